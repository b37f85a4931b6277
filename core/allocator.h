// One caching allocator over a raw source of memory: freed blocks wait in size classes, so a training step after the
// second takes nothing from the system (the first makes the optimizer's state last). Invariant: every block handed out
// is at least as large as asked for and aligned to `alignment`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace isonorm {

struct MemoryStats {
  int64_t current = 0;   // bytes in use by tensors
  int64_t peak = 0;      // largest `current` so far
  int64_t cached = 0;    // bytes kept for reuse
  int64_t requests = 0;  // blocks taken from the raw source so far
};

class Allocator {
 public:
  explicit Allocator(size_t alignment) : alignment_(alignment) {}
  virtual ~Allocator() = default;

  // A block of at least `bytes` bytes (nullptr for 0). Throws Error where the source has none left, even after the
  // cache was given back.
  virtual void* allocate(int64_t bytes);
  virtual void release(void* block, int64_t bytes) noexcept;

  void empty_cache() noexcept;  // gives the cached blocks back to the source
  MemoryStats stats() const;
  void reset_peak();

 protected:
  virtual void* source_allocate(int64_t bytes, size_t alignment) noexcept = 0;  // nullptr when there is none
  virtual void source_release(void* block) noexcept = 0;

 private:
  static int size_class(int64_t bytes);
  static int64_t class_bytes(int size_class);

  mutable std::mutex mutex_;
  std::vector<void*> free_[256];
  MemoryStats stats_;
  size_t alignment_;
};

// The allocator of CPU tensors: 64-byte aligned. Blocks of up to pool::kLargest bytes are the pool's and not counted.
// Lives until the process ends, so that tensors in static objects may outlive main().
Allocator& host_allocator();

}  // namespace isonorm
