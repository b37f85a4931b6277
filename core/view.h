// A tensor in another layout, without graph: what rules, optimizers and the callers of kernels use. The functions of
// autograd that have the same names record these.
//
// No result takes part in a graph, whatever x does. A result that shows x's elements as they lie shares x's storage,
// and may be x's own handle. Dimensions count from the end where negative. Any dtype and device. All but contiguous()
// and to() throw where x is undefined; a message begins with the name of the function.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace isonorm {
class TensorMap;
}

namespace isonorm::detached {

// A new tensor of its own, row-major without gaps.
Tensor clone(const Tensor& x);
// A new tensor for each, under the same names.
TensorMap clone(const TensorMap& tensors);
// Row-major without gaps: shares x's storage where x lies so, else a copy. Undefined where x is.
Tensor contiguous(const Tensor& x);
// In that dtype: shares x's storage where x has it, else a copy, rounded once to nearest even or truncated to an
// integer. Undefined where x is.
Tensor to(const Tensor& x, DType dtype);

// The same elements in row-major order under another shape; one size may be -1. Shares x's storage where the strides
// allow it, else a copy. Throws where the number of elements differs.
Tensor reshape(const Tensor& x, const Dims& shape);
// As reshape(), but throws, as `view`, where it would copy.
Tensor view(const Tensor& x, const Dims& shape);

// All of these share x's storage.

// Dimension i of the result is order[i] of x. Throws where `order` is no permutation of the dimensions.
Tensor permute(const Tensor& x, const std::vector<int>& order);
// x with two dimensions in each other's place. Throws where there is no such dimension.
Tensor transpose(const Tensor& x, int a, int b);
// Sizes of 1, and dimensions before the first, stretched to `shape` with stride 0; -1 keeps a size. Throws where x does
// not broadcast to `shape`.
Tensor expand(const Tensor& x, const Dims& shape);
// Every step-th of the positions [begin, end) of dimension `dim`; negative bounds count back from its end, and both are
// cut to it. Throws where there is no such dimension, or step < 1.
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step = 1);
// Positions [begin, begin + length) of dimension `dim`. Throws where they leave it.
Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length);

}  // namespace isonorm::detached
