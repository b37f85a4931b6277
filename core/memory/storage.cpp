#include "core/memory/storage.h"

#include "core/memory/allocator.h"

namespace isonorm {
namespace {
Allocator* bound[kDeviceKinds] = {};
}

void bind_allocator(DeviceKind kind, Allocator* allocator) { bound[static_cast<int>(kind)] = allocator; }

Allocator& allocator_of(Device device) {
  Allocator* a = bound[static_cast<int>(device.kind)];
  if (!a && device.kind == DeviceKind::cpu) return host_allocator();
  check(a != nullptr, "allocate: no device ", device, " in this program");
  return *a;
}

Storage::Storage(int64_t bytes, Device device) : data_(inside_), bytes_(bytes), device_(device) {
  if (device == kCpu && bytes > 0 && bytes <= kInside && !bound[static_cast<int>(DeviceKind::cpu)]) return;
  allocator_ = &allocator_of(device);
  data_ = allocator_->allocate(bytes);
}

Storage::~Storage() {
  if (allocator_) allocator_->release(data_, bytes_);
}

}  // namespace isonorm
