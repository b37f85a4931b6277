// The bytes behind tensors. Never moves; `version` rises with each in-place write, so that a saved tensor can tell that
// it was changed.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/device.h"

namespace isonorm {

class Allocator;

class Storage {
 public:
  Storage(int64_t bytes, Device device);  // uninitialised; throws where memory is out
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  // Of two threads that write at once one may not be counted; the version has changed all the same.
  void bump_version() { version_.store(version() + 1, std::memory_order_relaxed); }

 private:
  Allocator* allocator_;
  void* data_;
  int64_t bytes_;
  Device device_;
  std::atomic<uint32_t> version_{0};
};

// The allocator that serves a device kind: host_allocator() for the CPU unless another was bound (a test binds one that
// checks writes). A GPU library binds its own when its first device is asked for.
Allocator& allocator_of(Device device);
void bind_allocator(DeviceKind kind, Allocator* allocator);

}  // namespace isonorm
