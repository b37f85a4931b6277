// Kernels that use what threads of a block do together (primitives.cu).
#pragma once

#include "gpu/stream.h"

namespace isonorm::test {

// y[b] = sum of x[256 b..], by block_reduce; y[blocks + b] the largest, NaN where one is.
void start_sums(const gpu::Stream& stream, float* y, const float* x, int blocks);
// c = a b with a [16, 16], b [16, 8] and c [16, 8] row-major, rounded to bf16 in the products.
void start_product(const gpu::Stream& stream, float* c, const float* a, const float* b);
// y[i] = x[i] + 1
void start_add_one(const gpu::Stream& stream, float* y, const float* x, int n);
// A grid of so many blocks and threads that does nothing.
void start_empty(const gpu::Stream& stream, int64_t blocks, unsigned threads, size_t dynamic);

}  // namespace isonorm::test
