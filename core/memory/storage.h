// Storage: the bytes of tensors. They never move. `version` rises with each in-place write, so that a saved tensor can
// detect that it was changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace isonorm {

class Allocator;

class Storage {
 public:
  Storage(int64_t bytes, Device device);  // uninitialised; throws if memory runs out
  // Uses memory of another owner, who must keep it for longer than the Storage lives.
  Storage(void* borrowed, int64_t bytes, Device device) : data_(borrowed), bytes_(bytes), device_(device) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  // If two threads write at the same time, one write may not be counted; the version changes all the same.
  void bump_version() { version_.store(version() + 1, std::memory_order_relaxed); }

  // Keeps data that a kernel of this device derived from the bytes, in a form of its own. Valid until the bytes are
  // written to. Null: drops it.
  void keep(std::shared_ptr<const void> derived) {
    derived_ = std::move(derived);
    derived_version_ = version();
  }
  const void* derived() const { return derived_version_ == version() ? derived_.get() : nullptr; }

 private:
  static constexpr int64_t kInside = 64;  // CPU tensors of up to this many bytes are stored inside

  Allocator* allocator_ = nullptr;  // null: data_ is inside_ or borrowed
  void* data_;
  int64_t bytes_;
  Device device_;
  std::atomic<uint32_t> version_{0};
  uint32_t derived_version_ = 0;
  std::shared_ptr<const void> derived_;
  alignas(64) std::byte inside_[kInside];
};

// The allocator of a device: host_allocator() for the CPU unless another one was bound (a test binds one that checks
// writes). The first request for a GPU calls start_cuda(). Throws if the program has no such device.
Allocator& allocator_of(Device device);
// GPUs are bound in order of their indices, from 0. The bound GPUs are all GPUs that there are.
void bind_allocator(Device device, Allocator* allocator);

// Binds an allocator for every GPU, kernels::transfer and the kernels. Defined in gpu/. Throws if the library was built
// without GPU support, or if there is no GPU. Called once, by one thread.
void start_cuda();

}  // namespace isonorm
