// Sums, maxima and minima over any dimensions, without graph.
#pragma once

#include "core/kernels/reduce.h"

namespace isonorm::detached {

// A new tensor of `shape`: the elements of x (f32, f64 or bf16; for a sum i64, too) summed or multiplied, or the largest or
// smallest of them, along
// `dims`. `shape` is x's with those dimensions left out, or 1 in their place. Elements are combined in f32 where x is
// bf16. Copies x first where it is not contiguous, or where a dimension that is kept lies between two that are not.
// Throws "op: ..." where a product of sizes passes int64. Of no elements the sum is 0, the product 1; a maximum is the caller's to
// refuse.
Tensor reduce(kernels::ReduceOp kind, const Tensor& x, DimSet dims, const Dims& shape, const char* op);

// x summed to `shape`, which broadcasts to x's: along the dimensions that stretch.
Tensor sum_to(const Tensor& x, const Dims& shape, const char* op);

}  // namespace isonorm::detached
