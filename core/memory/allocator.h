// One caching allocator over a raw source of memory. Freed small blocks wait in lists by size class; large blocks are
// parts of segments (Ranges). A training step after the second therefore takes nothing from the system (the first
// creates the optimizer's state at its end). Invariant: every block is at least as large as requested and aligned to
// `alignment`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "core/device.h"

namespace isonorm {

// Large segments of memory, divided into blocks of any size. Free neighbours are merged into one range. A block takes
// the smallest range that holds it, at equal size the first by address (best fit with coalescing: Knuth, The Art of
// Computer Programming, vol. 1, section 2.5), so memory freed by gradients serves activations of other sizes. Memory
// that was never used comes last. A search visits every range; there are few, because blocks are large.
class Ranges {
 public:
  // Adds memory to divide. Its owner keeps it until release(). Throws std::bad_alloc, and has changed nothing then.
  void add(void* segment, int64_t bytes);
  // A block of `bytes` > 0; null if no range is large enough. Throws like add().
  void* take(int64_t bytes);
  // Frees a block from take().
  void give(void* block) noexcept;
  // Passes each free range to `discard`, since its contents are no longer needed, and each segment without blocks to
  // `release`.
  void empty(const std::function<void(void*, int64_t)>& discard, const std::function<void(void*)>& release) noexcept;

  int64_t busy() const { return busy_; }        // bytes of all blocks
  int64_t touched() const { return touched_; }  // bytes in blocks now or before, less discarded ones

 private:
  enum class State { busy, free, fresh };  // fresh: free and not touched
  struct Range {
    std::byte* begin;
    int64_t bytes;
    State state;
    bool first;  // first of its segment
  };
  using At = std::vector<Range>::iterator;

  At at(void* begin);         // the range that begins there, else the next range
  bool joins_next(At range);  // the next range is in the same segment and state
  void absorb_next(At range);
  void* take_fresh(int64_t bytes);

  std::vector<Range> ranges_;  // by address
  int64_t busy_ = 0, touched_ = 0;
};

struct MemoryStats {
  int64_t current = 0;   // bytes in use by tensors
  int64_t peak = 0;      // largest `current` so far
  int64_t cached = 0;    // bytes kept for reuse
  int64_t requests = 0;  // blocks so far that did not come entirely from cached memory
};

class Allocator {
 public:
  // Segments have `segment` bytes if the source can provide them, otherwise the size of the requested block.
  Allocator(int64_t alignment, int64_t segment) : alignment_(alignment), segment_(segment) {}
  virtual ~Allocator() = default;

  // A block of at least `bytes` bytes (nullptr for 0). Throws Error if the source has no memory left even after the
  // cache was returned to it.
  virtual void* allocate(int64_t bytes);
  virtual void release(void* block, int64_t bytes) noexcept;

  void empty_cache() noexcept;  // returns the cached blocks to the source
  MemoryStats stats() const;
  void reset_peak();

 protected:
  virtual void* source_allocate(int64_t bytes, int64_t alignment) noexcept = 0;  // nullptr if there is no memory
  virtual void source_release(void* block) noexcept = 0;
  virtual void source_discard(void*, int64_t) noexcept {}  // the contents of this part of a block are no longer needed
  virtual bool source_takes_back() const noexcept { return true; }  // whether source_release() is possible now

 private:
  void* take_small(int size_class);
  void* take_large(int64_t bytes);
  void* from_source(int64_t bytes);
  void empty() noexcept;
  int64_t in_use() const { return small_ + large_.busy(); }

  mutable std::mutex mutex_;
  const int64_t alignment_, segment_;
  std::vector<void*> free_[256];          // free small blocks, by size class
  int64_t small_ = 0, small_cached_ = 0;  // bytes of small blocks: in use, free
  Ranges large_;
  int64_t peak_ = 0, requests_ = 0;
};

// The allocator of CPU tensors, 64-byte aligned. Blocks of up to pool::kLargest bytes come from the pool and are not
// counted. Lives until the process ends, so that tensors in static objects may outlive main().
Allocator& host_allocator();

// While it lives, GPU memory that the calling thread asks for comes from this allocator. The allocator must outlive all
// its blocks.
class UseAllocator {
 public:
  [[nodiscard]] UseAllocator(Device device, Allocator& allocator);
  ~UseAllocator();
  UseAllocator(const UseAllocator&) = delete;
  UseAllocator& operator=(const UseAllocator&) = delete;

  // The innermost allocator of the calling thread for this device; null if there is none.
  static Allocator* of(Device device);

 private:
  const Device device_;
  Allocator& allocator_;
  const UseAllocator* outer_;
};

}  // namespace isonorm
