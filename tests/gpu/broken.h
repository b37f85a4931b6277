// Kernels with one mistake each (broken.cu).
#pragma once

#include <string_view>

#include "gpu/stream.h"

namespace isonorm::test {

// Starts the kernel of this mistake, in its right form or with the mistake. y and x: device memory of n floats.
void start(std::string_view mistake, bool right, const gpu::Stream& stream, float* y, const float* x, int n);

}  // namespace isonorm::test
