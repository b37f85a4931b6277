// Functions that choose elements by position. Positions are i64 tensors; a position outside of the dimension throws an
// error that names it and the size.
#pragma once

#include <tuple>

#include "core/tensor.h"

namespace isonorm {

// Rows of a table: weight [v, d] floating, ids of any shape -> [ids..., d]. The weight's gradient sums over equal ids
// in the order of ids, with the same bits for any number of threads.
Tensor embedding(const Tensor& weight, const Tensor& ids);

// out[.., j, ..] = x[.., ids[j], ..] along `dim`; ids [m], x of any dtype. Gradient as in embedding().
Tensor index_select(const Tensor& x, int dim, const Tensor& ids);

// out[.., j, ..] = x[.., index[.., j, ..], ..] along `dim`: index has x's rank and outside of `dim` at most x's sizes;
// the result has index's shape. The gradient of an element is the sum over the positions that it went to.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// 1 at position ids[..] of a new last dimension of size `classes`, 0 elsewhere; ids of any shape. Not differentiable.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::i64);

// `value` where mask (u8) is not 0, x elsewhere; mask broadcasts to x's shape. Masked elements get a gradient of 0.
// Throws if an integer dtype does not hold the value; a fraction is cut off.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);

// The elements of x, of any dtype, where mask (u8) is not 0, in row-major order: rank 1. mask broadcasts to x's shape.
// Differentiable. The result's size is counted on the host: on a device this waits for the mask.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// x with src[.., j, ..] written to, or added to, [.., index[.., j, ..], ..] along `dim`. src and index have one shape,
// of x's rank and outside of `dim` at most x's sizes; src has x's dtype. If several entries go to the same element,
// scatter() keeps the last and gives the others a gradient of 0; scatter_add() (not for u8) adds them in order, in f32
// for bf16. The results are new tensors; x is not changed.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src);
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// x (not u8) with entry j of src along `dim` added to its entry ids[j]: ids [m], src of x's shape with m along dim.
Tensor index_add(const Tensor& x, int dim, const Tensor& ids, const Tensor& src);

// The k largest elements along `dim`, largest first, and their positions (i64). NaN counts as largest; of equal
// elements the earlier comes first. x of any dtype; `values` is differentiable if it is floating. Throws if k is not in
// [0, size].
struct TopK {
  Tensor values, indices;
  operator std::tuple<Tensor&, Tensor&>() { return {values, indices}; }  // std::tie(values, indices) = x.max(1)
};
TopK topk(const Tensor& x, int64_t k, int dim = -1);

// All elements of x along `dim` in ascending or descending order, and their positions (i64). Stable: equal elements
// stay in order. NaN counts as largest: last in ascending order, first in descending, as in PyTorch. Otherwise like
// topk().
TopK sort(const Tensor& x, int dim = -1, bool descending = false);
// Only the positions.
Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);

// Statistics of values and positions: median, distinct values, counts, positions of nonzero elements, defined as in
// PyTorch. Tensors of any dtype and device, unless said otherwise. All but median() and quantile() wait for a device,
// because the size of their result depends on the values.

// The median along one dimension and its position (i64). If the number of elements is even, it is the smaller of the
// two in the middle. It is NaN if an element is NaN. The whole gradient goes to the chosen element. Throws if the
// dimension is empty.
TopK median(const Tensor& x, int dim, bool keepdim = false);
// Without dimensions: the median over all elements. Throws if there are none.
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
