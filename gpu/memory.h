// Device memory for core's caching allocator, pinned host memory for copies, and temporary memory of kernels. A
// released block may be reused at once, because work that the device's stream gets later runs later. Blocks for another
// stream wait for an event first.
#pragma once

#include <atomic>
#include <unordered_map>

#include "core/memory/allocator.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

class DeviceAllocator final : public Allocator {
 public:
  // of: the allocator whose limit also applies to this one and whose held() includes this one's memory; null: none.
  explicit DeviceAllocator(int index, DeviceAllocator* of = nullptr)
      : Allocator(256, int64_t{64} << 20), index_(index), of_(of ? *of : *this) {}

  // Throws "allocate: out of memory: 4096 bytes asked for, 512 in use; cuda:0: 1024 kept for reuse, 100 of 2048 bytes
  // free, limit 1500".
  void* allocate(int64_t bytes) override;

  int index() const { return index_; }
  int64_t held() const { return held_; }             // bytes taken from the device
  void set_limit(int64_t bytes) { limit_ = bytes; }  // limit of held(); 0: none

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override;
  void source_release(void* block) noexcept override;
  bool source_takes_back() const noexcept override;

  bool source_has(void*& block, int64_t bytes) noexcept;

  const int index_;
  DeviceAllocator& of_;
  std::atomic<int64_t> held_{0}, limit_{0};
  std::unordered_map<void*, int64_t> sizes_;  // sizes of the device's blocks; used under the allocator's lock
};

// Lives until the process ends. Throws if there is no such device.
DeviceAllocator& device_allocator(Device device);

// Pinned host memory, for copies that need not wait. Lives until the process ends.
Allocator& pinned_allocator();

// Temporary device memory for a kernel of the calling function, from the allocator of its tensors. Uninitialized;
// released at the end of the scope, perhaps before the kernel has run.
class Scratch {
 public:
  Scratch(Device device, int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T> T* as() const { return static_cast<T*>(data_); }

 private:
  Allocator& allocator_;
  int64_t bytes_;
  void* data_;
};

// Temporary pinned host memory.
class Pinned {
 public:
  explicit Pinned(int64_t bytes) : bytes_(bytes), data_(pinned_allocator().allocate(bytes)) {}
  ~Pinned() { pinned_allocator().release(data_, bytes_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  void* data() const { return data_; }

 private:
  int64_t bytes_;
  void* data_;
};

}  // namespace isonorm::gpu
