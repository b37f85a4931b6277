// The bytes behind tensors. Never moves; `version` rises with each in-place write, so that a saved tensor can tell that
// it was changed.
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
  Storage(int64_t bytes, Device device);  // uninitialised; throws where memory is out
  // Over memory of another owner, which has to outlive it.
  Storage(void* borrowed, int64_t bytes, Device device) : data_(borrowed), bytes_(bytes), device_(device) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  // Of two threads that write at once one may not be counted; the version has changed all the same.
  void bump_version() { version_.store(version() + 1, std::memory_order_relaxed); }

  // What a kernel of this device made of the bytes, in a form of its own, valid until they are written to. Null:
  // nothing.
  void keep(std::shared_ptr<const void> derived) {
    derived_ = std::move(derived);
    derived_version_ = version();
  }
  const void* derived() const { return derived_version_ == version() ? derived_.get() : nullptr; }

 private:
  static constexpr int64_t kInside = 64;  // up to so many bytes of a CPU tensor need no block of their own

  Allocator* allocator_ = nullptr;  // null: the bytes are inside_
  void* data_;
  int64_t bytes_;
  Device device_;
  std::atomic<uint32_t> version_{0};
  uint32_t derived_version_ = 0;
  std::shared_ptr<const void> derived_;
  alignas(64) std::byte inside_[kInside];
};

// The allocator that serves a device: host_allocator() for the CPU unless another was bound (a test binds one that
// checks writes). The first request for a GPU calls start_cuda(). Throws where the program has no such device.
Allocator& allocator_of(Device device);
// GPUs are bound in the order of their indices, from 0: those that are bound are those that there are.
void bind_allocator(Device device, Allocator* allocator);

// Binds an allocator for every GPU, kernels::transfer and the kernels. Defined in gpu/; throws where the library was
// built without it, or where there is no GPU. Called once, by one thread.
void start_cuda();

}  // namespace isonorm
