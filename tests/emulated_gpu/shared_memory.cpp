#include "tests/emulated_gpu/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace isonorm::gpu::emulated {

void set_ones(std::byte* p, size_t bytes) {
  volatile uint64_t* at = reinterpret_cast<volatile uint64_t*>(p);
  for (size_t i = 0; i < (bytes + 7) / 8; ++i) at[i] = ~uint64_t{0};
}

SharedMemory::SharedMemory() {
  void* p = mmap(nullptr, kRooms * kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  rooms_ = room_ = static_cast<std::byte*>(p);
  regions_.reserve(8);  // for the race checker, no thread of a block may allocate
}

SharedMemory::~SharedMemory() {
  show(rooms_, kRooms * kRoom);
  munmap(rooms_, kRooms * kRoom);
}

void SharedMemory::begin_block(size_t dynamic) {
  room_ = rooms_ + ++blocks_ % kRooms * kRoom;
  regions_.clear();
  used_ = fixed_ = 0;
  dynamic_ = dynamic;
  hide(room_, kRoom);
  if (dynamic) declare(kDynamic, dynamic);
}

void SharedMemory::declare(size_t offset, size_t bytes) {
  const size_t all = (bytes + kGap + 128 + 7) / 8 * 8;  // the next region may begin at a multiple of 128
  show(room_ + offset, all);
  set_ones(room_ + offset, all);
  hide(room_ + offset + bytes, all - bytes);
}

void* SharedMemory::region(const void* tag, size_t bytes, size_t alignment) {
  for (const Region& r : regions_)
    if (r.tag == tag) return room_ + r.offset;
  const size_t line = std::max<size_t>(alignment, 16), offset = (used_ + kGap + line - 1) / line * line;
  if (offset + bytes > kStaticMost + 8 * kGap || regions_.size() == regions_.capacity()) return nullptr;
  if (fixed_ + bytes + dynamic_ > kMost) return nullptr;
  if (regions_.empty() && !kAddressChecks) set_ones(room_, offset);
  declare(offset, bytes);
  regions_.push_back({tag, offset, bytes});
  used_ = offset + bytes;
  fixed_ += bytes;
  return room_ + offset;
}

bool SharedMemory::holds(const void* p, size_t bytes) const {
  const size_t at = static_cast<size_t>(static_cast<const std::byte*>(p) - room_);
  return at < kRoom && at + bytes <= kDynamic + kMost;
}

bool SharedMemory::ones(size_t begin, size_t end) const {
  return std::all_of(room_ + begin, room_ + end, [](std::byte b) { return b == std::byte{0xff}; });
}

bool SharedMemory::intact() const {
  if (kAddressChecks) return true;
  size_t from = 0;
  for (const Region& r : regions_) {
    if (!ones(from, r.offset)) return false;
    from = r.offset + r.bytes;
  }
  return (regions_.empty() || ones(from, from + kGap)) &&
         (dynamic_ == 0 || ones(kDynamic + dynamic_, kDynamic + dynamic_ + kGap));
}

}  // namespace isonorm::gpu::emulated
