// Sums, products, maxima and minima over any dimensions, without graph.
#pragma once

#include "core/kernels/reduce.h"

namespace isonorm::detached {

// A new tensor of `shape`: the sum, product, maximum or minimum of x along `dims`. x is f32, f64 or bf16, for a sum
// also i64. `shape` is x's shape without those dimensions, or with sizes of 1 in their place. bf16 elements are
// combined in f32. Copies x first if it is not contiguous, or if a kept dimension is between two reduced ones. An empty
// sum is 0, an empty product 1; the caller must refuse an empty maximum. Throws "op: ..." if a product of sizes
// overflows int64.
Tensor reduce(kernels::ReduceOp kind, const Tensor& x, DimSet dims, const Dims& shape, const char* op);

// x summed to `shape`, which broadcasts to x's shape: sums along the dimensions that were stretched.
Tensor sum_to(const Tensor& x, const Dims& shape, const char* op);

}  // namespace isonorm::detached
