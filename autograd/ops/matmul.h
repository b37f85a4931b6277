// Matrix products.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// Matrix product over the last two dimensions; leading dimensions broadcast. [..., m, k] x [..., k, n] -> [..., m, n];
// a rank-1 operand is a row on the left, a column on the right, and its dimension is dropped from the result. One
// floating dtype (bf16 is computed in f32). Transposed views are read without a copy. Throws where the inner sizes
// differ, an operand has rank 0, or dtypes differ.
Tensor matmul(const Tensor& a, const Tensor& b);

// y = x W^T + b: x [..., in], weight [out, in], bias [out] or undefined -> [..., out]. Throws naming both shapes.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Keeps a packed copy of `weight` [out, in] with it, or lets go of it: linear() and mlp() of 16 rows and more read that
// instead of packing the weight in every call, with the same bits, until the weight is written to. It takes as much
// memory as the weight. Does nothing for a dtype or a device whose products do not pack, and for a view.
void keep_packed(const Tensor& weight, bool on = true);

}  // namespace isonorm
