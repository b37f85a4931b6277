#include "core/memory/storage.h"

#include "core/memory/allocator.h"

namespace isonorm {

namespace {

constexpr int kMostGpus = 64;
std::atomic<Allocator*> host{nullptr}, gpus[kMostGpus];
std::atomic<int> gpu_count{0};

Allocator& allocator_of_gpu(Device device) {
  if (Allocator* a = UseAllocator::of(device)) return *a;
  if (gpu_count == 0) {
    [[maybe_unused]] static const bool started = (start_cuda(), true);  // if it throws, the next request tries again
  }
  check(device.index >= 0 && device.index < gpu_count, "allocate: no device ", device,
        ", the GPUs are cuda:0 to cuda:", gpu_count - 1);
  return *gpus[device.index];
}

}  // namespace

void bind_allocator(Device device, Allocator* allocator) {
  if (device == kCpu) {
    host = allocator;
    return;
  }
  check(device.kind == DeviceKind::cuda && device.index >= 0 && device.index <= gpu_count && device.index < kMostGpus,
        "bind_allocator: ", device, " after ", gpu_count.load(), " GPUs, expected the next one");
  gpus[device.index] = allocator;
  if (device.index == gpu_count) ++gpu_count;
}

Allocator& allocator_of(Device device) {
  if (device.kind == DeviceKind::cuda) return allocator_of_gpu(device);
  Allocator* a = host;
  return a ? *a : host_allocator();
}

Storage::Storage(int64_t bytes, Device device) : data_(inside_), bytes_(bytes), device_(device) {
  if (device == kCpu && bytes > 0 && bytes <= kInside && !host) return;
  allocator_ = &allocator_of(device);
  data_ = allocator_->allocate(bytes);
}

Storage::~Storage() {
  if (allocator_) allocator_->release(data_, bytes_);
}

namespace {
thread_local const UseAllocator* innermost = nullptr;
}

UseAllocator::UseAllocator(Device device, Allocator& allocator)
    : device_(device), allocator_(allocator), outer_(innermost) {
  innermost = this;
}
UseAllocator::~UseAllocator() { innermost = outer_; }

Allocator* UseAllocator::of(Device device) {
  for (const UseAllocator* u = innermost; u; u = u->outer_)
    if (u->device_ == device) return &u->allocator_;
  return nullptr;
}

}  // namespace isonorm
