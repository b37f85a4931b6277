// Large segments of memory, divided into blocks of any size. Free neighbours are merged into one range. A block takes
// the smallest range that holds it, at equal size the first by address (best fit with coalescing: Knuth, The Art of
// Computer Programming, vol. 1, section 2.5), so memory freed by gradients serves activations of other sizes. Memory
// that was never used comes last. A search visits every range; there are few, because blocks are large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace isonorm {

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

}  // namespace isonorm
