// Tensors in another layout, without graph, for backward rules, optimizers and callers of kernels. The functions of the
// same names in autograd record a graph.
//
// No result takes part in a graph, even if x does. A result that shows x's elements in place shares x's storage, and
// may be x's own handle. Negative dimensions count from the end. Any dtype and device. All but contiguous() and to()
// throw if x is undefined; messages begin with the name of the function.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace isonorm {
class TensorMap;
}

namespace isonorm::detached {

// A new tensor, row-major without gaps.
Tensor clone(const Tensor& x);
// Clones every tensor, under the same names.
TensorMap clone(const TensorMap& tensors);
// Row-major without gaps: shares x's storage if x is contiguous, otherwise a copy. Undefined if x is.
Tensor contiguous(const Tensor& x);
// Converts to `dtype`: shares x's storage if x has this dtype, otherwise a copy, rounded once to nearest even or
// truncated to an integer. Undefined if x is.
Tensor to(const Tensor& x, DType dtype);

// The same elements in row-major order under another shape; one size may be -1. Shares x's storage if the strides allow
// it, otherwise a copy. Throws if the number of elements differs.
Tensor reshape(const Tensor& x, const Dims& shape);
// Like reshape(), but throws, as `view`, if it would have to copy.
Tensor view(const Tensor& x, const Dims& shape);

// All functions below share x's storage.

// Dimension i of the result is dimension order[i] of x. Throws if `order` is not a permutation of the dimensions.
Tensor permute(const Tensor& x, const std::vector<int>& order);
// Swaps two dimensions. Throws if one does not exist.
Tensor transpose(const Tensor& x, int a, int b);
// Broadcasts x to `shape`: sizes of 1 and missing leading dimensions get stride 0; -1 keeps a size. Throws if x does
// not broadcast to `shape`.
Tensor expand(const Tensor& x, const Dims& shape);
// Every step-th of the positions [begin, end) of dimension `dim`. Negative bounds count from the end; both are clamped
// to the dimension. Throws if the dimension does not exist, or step < 1.
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step = 1);
// Positions [begin, begin + length) of dimension `dim`. Throws if they are not all inside it.
Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length);

}  // namespace isonorm::detached
