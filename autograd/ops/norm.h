// Normalizations of the last dimension. x [..., width] of a floating dtype; gain and bias [width] of x's dtype, or f32
// if x is bf16, or undefined; the result has x's shape. Sums are taken in f32 for bf16, else in x's dtype. All throw if
// shapes or dtypes do not fit.
#pragma once

#include <optional>

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

struct NormOptions {
  double eps = 1e-5;  // inside the root
  double p = 1;       // rms_norm: share of the entries, the leading ones, that is averaged: ceil(p width), at least 1
};

// (x - mean) / sqrt(var + eps) gain + bias with the population variance (Ba et al., 1607.06450). A row of width 1 gives
// the bias. Without gain and bias the result sums to 0, so the gradient of its sum is 0.
Tensor layer_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, NormOptions options = {});
inline Tensor layer_norm(const Tensor& x, NormOptions options) { return layer_norm(x, {}, {}, options); }

// x / sqrt(mean(x^2) + eps) gain + bias; with p < 1 the mean is over the leading entries only (Zhang & Sennrich,
// 1910.07467).
Tensor rms_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, NormOptions options = {});
inline Tensor rms_norm(const Tensor& x, NormOptions options) { return rms_norm(x, {}, {}, options); }

// RMSNorm of the zero-mean row (x, -sum x) of width + 1 entries, without its last entry (Jiang et al., 2305.14858):
// x / sqrt((sum(x^2) + sum(x)^2) / (width + 1) + eps) gain + bias.
Tensor crms_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, NormOptions options = {});

// The same for a row given in an orthonormal basis of the zero-mean rows: x / sqrt(sum(x^2) / (width + 1) + eps) gain +
// bias.
Tensor crms_isometric_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, NormOptions options = {});

// The norm that `spec` names; x gain + bias for NormKind::none. `as`: dtype of the result, by default x's. A bf16
// result of f32, or an f32 result of bf16, is computed in f32 and rounded once.
Tensor normalize(const Tensor& x, const NormSpec& spec, const Tensor& gain = {}, const Tensor& bias = {},
                 std::optional<DType> as = {});

// Residual addition and normalization in one pass over memory, forward and backward.

struct AddNorm {
  Tensor sum;     // x + branch: the new residual stream
  Tensor normed;  // normalize(sum): the input of the next branch
};

// sum = x + branch, normed = normalize(sum, spec, gain, bias). x and branch [..., width] have one shape and one
// floating dtype, or x is f32 and branch bf16; gain and bias [width] or undefined. `sum` has x's dtype and is
// normalized as it is stored. `normed` has the dtype `as`, by default x's, as in normalize(). Gradients may come
// through either output or both. Throws like normalize(), and if the shapes of x and branch differ or their dtypes do
// not fit.
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {}, std::optional<DType> as = {});

namespace reference {
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {}, std::optional<DType> as = {});
}

}  // namespace isonorm
