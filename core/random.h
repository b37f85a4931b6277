// Random state: a seed and a position. Two numbers that a checkpoint stores and sets back; the values depend on nothing
// else, so they have the same bits for any number of threads and on every device.
#pragma once

#include <cstdint>

namespace isonorm {

// A sequence of 2^64 blocks of 128 random bits; other seeds give independent sequences. Not synchronised: one thread at
// a time.
struct Generator {
  uint64_t seed = 0;
  uint64_t offset = 0;  // of the next block
  // Of draws that `shares` ranks make together, each of as many blocks, this one takes the share-th.
  uint64_t share = 0, shares = 1;

  // The state to draw `blocks` blocks from; moves on past them, and past those of the other shares.
  Generator take(uint64_t blocks) {
    const Generator here{seed, offset + share * blocks};
    offset += shares * blocks;
    return here;
  }
  bool operator==(const Generator&) const = default;
};

// What random functions draw from where no generator is given. Every thread has its own, and each starts at {0, 0}:
// what a thread computes does not depend on what others do, and a script gives the same bits in whichever thread it
// runs. Threads that are to differ are seeded differently.
Generator& default_generator();

// While it lives, the calling thread's default generator goes on from `from`; then from where it was, also where something
// throws.
class DrawsFrom {
 public:
  [[nodiscard]] explicit DrawsFrom(const Generator& from) : before_(default_generator()) { default_generator() = from; }
  ~DrawsFrom() { default_generator() = before_; }
  DrawsFrom(const DrawsFrom&) = delete;
  DrawsFrom& operator=(const DrawsFrom&) = delete;

 private:
  const Generator before_;
};

// Sets the calling thread's default generator to the beginning of the sequence of `seed`.
void manual_seed(uint64_t seed);

}  // namespace isonorm
