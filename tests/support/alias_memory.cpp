#include "tests/support/alias_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/formulas/round_up.h"
#include "core/tensor.h"

namespace isonorm::test {
namespace {
constexpr int64_t kReserved = int64_t{8} << 30;  // of addresses; memory is taken as it is written to
}

AliasMemory::AliasMemory() : GuardAllocator(256) {
  const int file = memfd_create("device", 0);
  check_io(file >= 0 && ftruncate(file, kReserved) == 0, "alias memory: no file in memory");
  const auto map = [&](int protection) {
    void* p = mmap(nullptr, kReserved, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    check_io(p != MAP_FAILED, "alias memory: no room for ", kReserved, " bytes");
    return static_cast<unsigned char*>(p);
  };
  device_ = map(PROT_NONE), alias_ = map(PROT_READ | PROT_WRITE);
  close(file);
}

void* AliasMemory::source_allocate(int64_t bytes, int64_t alignment) noexcept {
  const int64_t whole = round_up(bytes, alignment);
  void* p = device_ + used_;
  if (const auto at = unused_.find(whole); at != unused_.end()) {
    p = at->second;
    unused_.erase(at);
  } else {
    if (used_ + whole > kReserved) return nullptr;
    used_ += whole;
  }
  sizes_[p] = whole;
  return p;
}

void AliasMemory::source_release(void* block) noexcept {
  const auto at = sizes_.find(block);
  unused_.emplace(at->second, block);
  sizes_.erase(at);
}

unsigned char* AliasMemory::reachable(void* address) const {
  return alias_ + (static_cast<unsigned char*>(address) - device_);
}

void alias_transfer(const Tensor& dst, const Tensor& src) {
  const auto at = [](const Tensor& t) {
    const TensorImpl& i = t.impl();
    auto* first = static_cast<unsigned char*>(i.storage->data()) + i.offset * size_of(i.dtype);
    return t.device() == kCpu ? first : static_cast<AliasMemory&>(allocator_of(t.device())).reachable(first);
  };
  std::memcpy(at(dst), at(src), static_cast<size_t>(src.numel() * size_of(src.dtype())));
}

}  // namespace isonorm::test
