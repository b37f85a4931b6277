// Kernels that use cooperation of a block's threads (primitives.cu).
#pragma once

#include "gpu/stream.h"

namespace isonorm::test {

// y[b] = sum of x[256 b..], by block_reduce; y[blocks + b] = the largest, NaN if one is NaN.
void start_sums(const gpu::Stream& stream, float* y, const float* x, int blocks);
// c = a b with a [16, 16], b [16, 8] and c [16, 8] row-major, rounded to bf16 in the products.
void start_product(const gpu::Stream& stream, float* c, const float* a, const float* b);
// y[i] = x[i] + 1
void start_add_one(const gpu::Stream& stream, float* y, const float* x, int n);
// Starts a kernel that does nothing, with this many blocks and threads.
void start_empty(const gpu::Stream& stream, int64_t blocks, unsigned threads, size_t dynamic);

}  // namespace isonorm::test
