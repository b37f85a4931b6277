// Functions that choose elements by position. Positions are i64 tensors; one outside of the dimension throws, naming it
// and the size.
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
// the result has index's shape. The gradient of an element is the sum over the places it went to.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// 1 at position ids[..] of a new last dimension of size `classes`, 0 elsewhere; ids of any shape. Not differentiable.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::i64);

// `value` where mask (u8) is not 0, x elsewhere; mask broadcasts to x's shape. Masked elements get a gradient of 0.
// Throws if an integer dtype does not hold the value; a fraction is cut off.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);

// The elements of x, of any dtype, where mask (u8) is not 0, in row-major order: rank 1. mask broadcasts to x's shape.
// Differentiable. How many there are is counted on the host: on a device this waits for the mask.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// x with src[.., j, ..] at [.., index[.., j, ..], ..] along `dim`, or added there: src and index have one shape, of x's
// rank and outside of `dim` at most x's sizes; src has x's dtype. If several go to the same element, scatter() keeps
// the last and gives the others a gradient of 0; scatter_add() (not of u8) adds them in order, in f32 for bf16. New
// tensors; x is not changed.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src);
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// x, not of u8, with entry j of src along `dim` added to its entry ids[j]: ids [m], src of x's shape with m along dim.
Tensor index_add(const Tensor& x, int dim, const Tensor& ids, const Tensor& src);

// The k largest along `dim`, largest first (NaN counts as largest; of equals the earlier comes first), and their
// positions (i64). x of any dtype; `values` is differentiable where it is floating. Throws where k is not in [0, size].
struct TopK {
  Tensor values, indices;
  operator std::tuple<Tensor&, Tensor&>() { return {values, indices}; }  // std::tie(values, indices) = x.max(1)
};
TopK topk(const Tensor& x, int64_t k, int dim = -1);

// All of x along `dim` in ascending or descending order, and their positions (i64). Stable: equals stay in order. NaN
// counts as largest: last in ascending order, first in descending, as in PyTorch. Otherwise as topk().
TopK sort(const Tensor& x, int dim = -1, bool descending = false);
// The positions alone.
Tensor argsort(const Tensor& x, int dim = -1, bool descending = false);

}  // namespace isonorm
