// Functions that choose elements by position. Positions are i64 tensors; one outside of the dimension throws, naming it
// and the size.
#pragma once

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

// `value` where mask (u8) is not 0, x elsewhere; mask broadcasts to x's shape, x is floating. The gradient is 0 where
// the mask is set.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

// The k largest along `dim`, largest first (NaN counts as largest; of equals the earlier comes first), and their
// positions (i64). `values` is differentiable. Throws where k is not in [0, size].
struct TopK {
  Tensor values, indices;
};
TopK topk(const Tensor& x, int64_t k, int dim = -1);

}  // namespace isonorm
