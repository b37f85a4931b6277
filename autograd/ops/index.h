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

}  // namespace isonorm
