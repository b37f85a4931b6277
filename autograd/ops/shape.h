// Functions that show the elements in another shape. Functions marked "view" share storage with their argument. All are
// differentiable for floating tensors and take any dtype. Negative dimensions count from the end; a wrong dimension
// throws "op: dimension 5 is out of range for rank 3". Versions without graph: core/view.h.
#pragma once

#include <vector>

#include "autograd/ops/arrange.h"  // for code that expects cat() and the like in this header
#include "core/tensor.h"

namespace isonorm {

// The same elements in row-major order under another shape; one size may be -1. A view if the strides allow it, else a
// copy.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor view(const Tensor& x, const Dims& shape);  // like reshape, but throws if it would copy
Tensor flatten(const Tensor& x, int first = 0, int last = -1);
Tensor permute(const Tensor& x, const std::vector<int>& order);  // view: dimension i of the result is order[i] of x
Tensor transpose(const Tensor& x, int a, int b);                 // view
Tensor squeeze(const Tensor& x, int dim);                        // view: drops a dimension of size 1
Tensor unsqueeze(const Tensor& x, int dim);                      // view: a new dimension of size 1 before `dim`
Tensor expand(const Tensor& x, const Dims& shape);  // view: stretches sizes of 1 with stride 0; -1 keeps a size
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step = 1);  // view; negative ends count back
Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length);                // view
Tensor select(const Tensor& x, int dim, int64_t index);                                // view: drops dim
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim);  // views
std::vector<Tensor> chunk(const Tensor& x, int64_t parts, int dim);  // views of equal size, the last may be smaller
std::vector<Tensor> unbind(const Tensor& x, int dim = 0);            // views: select(x, dim, i) for each i
// View of all windows of `size` entries along `dim`, `step` from one to the next. The windows lie along `dim`, and the
// entries of a window become a new last dimension: [.., n, ..] to [.., (n - size) / step + 1, .., size]. The gradient
// sums over the windows that contain an entry. Throws if size is not in [1, n], step < 1, or x has the largest rank.
Tensor unfold(const Tensor& x, int dim, int64_t size, int64_t step);

Tensor contiguous(const Tensor& x);  // x itself if it is row-major without gaps, else a copy

}  // namespace isonorm
