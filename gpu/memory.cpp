#include "gpu/memory.h"

#include <memory>
#include <vector>

#include "gpu/device.h"
#include "gpu/recorder.h"

namespace isonorm::gpu {
namespace {

class PinnedAllocator final : public Allocator {
 public:
  PinnedAllocator() : Allocator(64, int64_t{8} << 20) {}

 private:
  void* source_allocate(int64_t bytes, int64_t) noexcept override {
    void* block = nullptr;
    if (cudaHostAlloc(&block, static_cast<size_t>(bytes), cudaHostAllocDefault) == cudaSuccess) return block;
    (void)cudaGetLastError();
    return nullptr;
  }
  void source_release(void* block) noexcept override { (void)cudaFreeHost(block); }
};

}  // namespace

void* DeviceAllocator::allocate(int64_t bytes) {
  try {
    return Allocator::allocate(bytes);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::memory) throw;
    const Memory m = memory({DeviceKind::cuda, index_});
    const int64_t limit = limit_;
    throw Error(ErrorKind::memory,
                text(e.what(), "; cuda:", index_, ": ", stats().cached, " kept for reuse, ", m.free, " of ", m.total,
                     " bytes free", limit ? text(", limit ", limit) : std::string()),
                e.file(), e.line());
  }
}

void* DeviceAllocator::source_allocate(int64_t bytes, int64_t) noexcept {
  const int64_t limit = limit_;
  if (limit && held_ + bytes > limit) return nullptr;
  int outer = 0;
  void* block = nullptr;
  (void)cudaGetDevice(&outer);
  (void)cudaSetDevice(index_);
  const bool there = cudaMalloc(&block, static_cast<size_t>(bytes)) == cudaSuccess;
  (void)cudaSetDevice(outer);
  if (!there) {
    (void)cudaGetLastError();  // a failed allocation leaves the device as it was
    return nullptr;
  }
  record(Recorded::Kind::allocation, "device", 0, bytes);
  held_ += bytes;
  sizes_[block] = bytes;
  return block;
}

void DeviceAllocator::source_release(void* block) noexcept {
  (void)cudaFree(block);
  held_ -= sizes_.extract(block).mapped();
}

DeviceAllocator& device_allocator(Device device) {
  check_device(device);
  static const auto& all = *[] {
    auto* list = new std::vector<std::unique_ptr<DeviceAllocator>>;
    for (int i = 0; i < device_count(); ++i) list->push_back(std::make_unique<DeviceAllocator>(i));
    return list;
  }();
  return *all[static_cast<size_t>(device.index)];
}

Allocator& pinned_allocator() {
  static Allocator* allocator = new PinnedAllocator;
  return *allocator;
}

Scratch::Scratch(Device device, int64_t bytes)
    : allocator_(allocator_of(device)), bytes_(bytes), data_(allocator_.allocate(bytes)) {}
Scratch::~Scratch() { allocator_.release(data_, bytes_); }

}  // namespace isonorm::gpu
