// Matrix products.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// Matrix product over the last two dimensions; leading dimensions broadcast. [..., m, k] x [..., k, n] -> [..., m, n];
// a rank-1 operand is a row on the left, a column on the right, and its dimension is dropped from the result. One
// floating dtype (bf16 is computed in f32). Transposed views are read without a copy. Throws if the inner sizes differ,
// an operand has rank 0, or dtypes differ.
Tensor matmul(const Tensor& a, const Tensor& b);

// Sum of a_i b_i: [n] and [n] -> []. Throws for other ranks, and like matmul().
Tensor dot(const Tensor& a, const Tensor& b);

// a_i b_j: [m] and [n] -> [m, n]. Throws for other ranks, and like mul().
Tensor outer(const Tensor& a, const Tensor& b);

// y = x W^T + b: x [..., in], weight [out, in], bias [out] or undefined -> [..., out] of x's dtype. All have one
// floating dtype, or x is bf16 and weight and bias are f32; these are rounded to bf16 for the products, while their
// gradients stay f32 (mixed precision, 1710.03740). Throws, naming both shapes or both dtypes, if they do not fit.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace isonorm
