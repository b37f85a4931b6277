// Matrix products and Einstein summation.
#pragma once

#include <string>
#include <vector>

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

// The sum of products given by a formula in NumPy's notation, "bij,bjk->bik": a letter (a to z, A to Z) for each
// dimension of each operand. Dimensions with the same letter are matched; letters that are not in the result are
// summed. Without "->" the result has the letters that occur once, in alphabetical order. Spaces are ignored. The
// operands have one floating dtype and are multiplied from left to right, two at a time, as matrix products.
//
// Throws if letters and ranks do not fit, two sizes of one letter differ (1 does not stretch), a letter occurs twice in
// an operand (a diagonal) or in the result, the result names a letter that no operand has, or a product has more than
// eight dimensions.
Tensor einsum(const std::string& formula, const std::vector<Tensor>& operands);

}  // namespace isonorm
