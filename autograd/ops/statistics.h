// Statistics of values and positions: median, distinct values, counts, positions of nonzero elements, defined as in
// PyTorch. Tensors of any dtype and device, unless said otherwise. All but median() and quantile() wait for a device,
// because the size of their result depends on the values.
#pragma once

#include "autograd/ops/index.h"

namespace isonorm {

// The median along one dimension and its position (i64). If the number of elements is even, it is the smaller of the
// two in the middle. It is NaN if an element is NaN. The whole gradient goes to the chosen element. Throws if the
// dimension is empty.
TopK median(const Tensor& x, int dim, bool keepdim = false);
// The median of all elements, without dimensions. Throws if there are none.
Tensor median(const Tensor& x);

// The value below which a share q of the elements along one dimension lies: sorted element number q (n - 1), linearly
// interpolated between two elements; NaN if an element is NaN. Floating x; bf16 is computed in f32. The gradient goes
// to the one or two elements. Throws unless q is in [0, 1], and if the dimension is empty.
Tensor quantile(const Tensor& x, double q, int dim, bool keepdim = false);
// The quantile over all elements, a tensor [].
Tensor quantile(const Tensor& x, double q);

// The distinct values of x in ascending order, rank 1; every NaN counts as distinct. Not differentiable.
Tensor unique(const Tensor& x);
// The distinct values, the position in `values` of each element of x (i64, x's shape), and how often each value occurs
// (i64). Python's torch.unique(x, return_inverse=True, return_counts=True).
struct Unique {
  Tensor values, inverse, counts;
};
Unique unique_all(const Tensor& x);

// Positions [count, rank] (i64) of the elements that are not 0, NaN among them, in row-major order. Not differentiable.
Tensor nonzero(const Tensor& x);

// The number of occurrences of each of 0, 1, ... in ids [n] (i64 or u8), as i64; or the sums of weights [n] (i64 or
// floating, its dtype) over equal ids, differentiable by the weights. Length: the largest id + 1, and at least
// `minlength`. Throws if an id or minlength is negative, or if shapes differ.
Tensor bincount(const Tensor& ids, const Tensor& weights = {}, int64_t minlength = 0);

}  // namespace isonorm
