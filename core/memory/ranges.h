// Memory in large segments, divided among blocks of any size. Free neighbours are one range, and a block takes the
// smallest range that holds it, the first of several by address (best fit with coalescing: Knuth, The Art of Computer
// Programming, vol. 1, section 2.5): what gradients leave is there for activations of other sizes. Memory that no block
// had before comes last. A search looks at every range: blocks are large, so they are not many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace isonorm {

class Ranges {
 public:
  // Memory to divide, whose owner keeps it until release(). Throws std::bad_alloc and has then changed nothing.
  void add(void* segment, int64_t bytes);
  // A block of `bytes` > 0; null where no range holds it. Throws as add() does.
  void* take(int64_t bytes);
  // Frees a block that take() gave.
  void give(void* block) noexcept;
  // Forgets what lies in free ranges, handing each to `discard`, then each segment without a block to `release`.
  void empty(const std::function<void(void*, int64_t)>& discard, const std::function<void(void*)>& release) noexcept;

  int64_t busy() const { return busy_; }        // bytes of all blocks
  int64_t touched() const { return touched_; }  // bytes that are in a block or were, and are not forgotten

 private:
  enum class State { busy, free, fresh };  // fresh: free and not touched
  struct Range {
    std::byte* begin;
    int64_t bytes;
    State state;
    bool first;  // of its segment
  };
  using At = std::vector<Range>::iterator;

  At at(void* begin);         // the range that begins there, else the next one
  bool joins_next(At range);  // neighbours of one segment, in the same state
  void absorb_next(At range);
  void* take_fresh(int64_t bytes);

  std::vector<Range> ranges_;  // by address
  int64_t busy_ = 0, touched_ = 0;
};

}  // namespace isonorm
