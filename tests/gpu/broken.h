// Kernels with a mistake each (broken.cu).
#pragma once

#include "gpu/stream.h"

namespace isonorm::test {

enum class Mistake {
  no_barrier,
  no_second_barrier,
  no_warp_barrier,
  some_leave,
  two_barriers,
  half_shuffle,
  past_the_end,
  past_shared,
  no_atomic,
  no_wait_for_copies,
  too_much_shared,
  other_alignment
};

// Starts the kernel, in its right form or with the mistake. y and x: device memory of n floats.
void start(Mistake m, bool right, const gpu::Stream& stream, float* y, const float* x, int n);

}  // namespace isonorm::test
