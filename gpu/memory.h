// Memory of devices behind core's caching allocator, host memory that devices copy from and to, and a kernel's own
// temporaries. A block that is given back may be handed out at once: what is given to the device's stream later is done
// later. Blocks for another stream wait for an event first.
#pragma once

#include <atomic>
#include <unordered_map>

#include "core/memory/allocator.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

class DeviceAllocator final : public Allocator {
 public:
  // of: whose limit holds for this one, too, and whose held() has what this one takes; null: none.
  explicit DeviceAllocator(int index, DeviceAllocator* of = nullptr)
      : Allocator(256, int64_t{64} << 20), index_(index), of_(of ? *of : *this) {}

  // Throws "allocate: out of memory: 4096 bytes asked for, 512 in use; cuda:0: 1024 kept for reuse, 100 of 2048 bytes
  // free, limit 1500".
  void* allocate(int64_t bytes) override;

  int index() const { return index_; }
  int64_t held() const { return held_; }             // bytes taken from the device
  void set_limit(int64_t bytes) { limit_ = bytes; }  // of held(); 0: none

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override;
  void source_release(void* block) noexcept override;
  bool source_takes_back() const noexcept override;

  bool source_has(void*& block, int64_t bytes) noexcept;

  const int index_;
  DeviceAllocator& of_;
  std::atomic<int64_t> held_{0}, limit_{0};
  std::unordered_map<void*, int64_t> sizes_;  // of blocks of the source; used under the allocator's lock
};

// Lives until the process ends. Throws where there is no such device.
DeviceAllocator& device_allocator(Device device);

// Host memory that copies go to and from without waiting. Lives until the process ends.
Allocator& pinned_allocator();

// Bytes of a device for a kernel of the calling function, taken from where its tensors come from: uninitialised, given
// back at the end of the scope, when the kernel need not have run.
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

// The same on the host, pinned.
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
