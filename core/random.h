// Random state: a seed and a position, two numbers that a checkpoint stores and restores. The values depend on nothing
// else, so they have the same bits for any number of threads and on every device.
#pragma once

#include <cstdint>

namespace isonorm {

// A sequence of 2^64 blocks of 128 random bits. Different seeds give independent sequences. Not synchronised: one
// thread at a time.
struct Generator {
  uint64_t seed = 0;
  uint64_t offset = 0;  // position of the next block
  // `shares` ranks draw together, each the same number of blocks; this generator takes part `share` of every draw.
  uint64_t share = 0, shares = 1;

  // Returns the state to draw `blocks` blocks from, and advances past them and past the blocks of the other shares.
  Generator take(uint64_t blocks) {
    const Generator here{seed, offset + share * blocks};
    offset += shares * blocks;
    return here;
  }
  bool operator==(const Generator&) const = default;
};

// The generator that random functions use if they are given none. Every thread has its own, which starts at {0, 0}: a
// thread's numbers do not depend on other threads, and a script gives the same bits in any thread. Give threads
// different seeds if they should draw different numbers.
Generator& default_generator();

// While it lives, the calling thread's default generator continues from `from`. The destructor restores the generator's
// previous state, also after an exception.
class DrawsFrom {
 public:
  [[nodiscard]] explicit DrawsFrom(const Generator& from) : before_(default_generator()) { default_generator() = from; }
  ~DrawsFrom() { default_generator() = before_; }
  DrawsFrom(const DrawsFrom&) = delete;
  DrawsFrom& operator=(const DrawsFrom&) = delete;

 private:
  const Generator before_;
};

// Sets the calling thread's default generator to the start of the sequence of `seed`.
void manual_seed(uint64_t seed);

}  // namespace isonorm
