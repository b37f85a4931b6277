#include "gpu/memory.h"

#include <memory>
#include <vector>

#include "gpu/device.h"
#include "gpu/recorder.h"
#include "gpu/stream.h"
#include "gpu/steps/capture.h"

namespace isonorm::gpu {
namespace {

// If the device is lost, it has no memory either: then throws that error instead.
void check_lost(int index) { check_stream(stream_of(Device{DeviceKind::cuda, index}), cudaGetLastError()); }

class PinnedAllocator final : public Allocator {
 public:
  PinnedAllocator() : Allocator(64, int64_t{8} << 20) {}

  void* allocate(int64_t bytes) override {
    try {
      return Allocator::allocate(bytes);
    } catch (const Error&) {
      int index = 0;
      if (cudaGetDevice(&index) == cudaSuccess) check_lost(index);
      throw;
    }
  }

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
    check_lost(index_);
    const Memory m = memory({DeviceKind::cuda, index_});
    const int64_t limit = of_.limit_;
    throw Error(ErrorKind::memory,
                text(e.what(), "; cuda:", index_, ": ", stats().cached, " kept for reuse, ", m.free, " of ", m.total,
                     " bytes free", limit ? text(", limit ", limit) : std::string()),
                e.file(), e.line());
  }
}

// Also works during a capture, which cudaMalloc() would otherwise spoil: the graph need not repeat the allocation.
bool DeviceAllocator::source_has(void*& block, int64_t bytes) noexcept {
  if (of_.limit_ && of_.held_ + bytes > of_.limit_) return false;
  int outer = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  (void)cudaGetDevice(&outer);
  (void)cudaSetDevice(index_);
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  const bool there = cudaMalloc(&block, static_cast<size_t>(bytes)) == cudaSuccess;
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  (void)cudaSetDevice(outer);
  if (!there) (void)cudaGetLastError();  // a failed allocation leaves the device as it was
  return there;
}

void* DeviceAllocator::source_allocate(int64_t bytes, int64_t) noexcept {
  void* block = nullptr;
  if (!source_has(block, bytes)) {
    if (&of_ == this || !source_takes_back()) return nullptr;
    of_.empty_cache();
    if (!source_has(block, bytes)) return nullptr;
  }
  record(Recorded::Kind::allocation, "device", 0, bytes);
  of_.held_ += bytes;
  sizes_[block] = bytes;
  return block;
}

// False during a capture: cudaFree() would spoil it, and the graph uses blocks that were released during the capture.
bool DeviceAllocator::source_takes_back() const noexcept { return !under_capture(); }

void DeviceAllocator::source_release(void* block) noexcept {
  (void)cudaFree(block);
  of_.held_ -= sizes_.extract(block).mapped();
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
