// Residual addition and normalization in one pass over memory, forward and backward.
#pragma once

#include <optional>

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

struct AddNorm {
  Tensor sum;     // x + branch: the residual stream goes on with it
  Tensor normed;  // normalize(sum): what the next branch reads
};

// sum = x + branch, normed = normalize(sum, spec, gain, bias). x and branch [..., width] of one shape and floating
// dtype, or x of f32 and branch of bf16; gain and bias [width] or undefined. `sum` has x's dtype, and what is normalized
// is the sum as it is stored; `normed` has the dtype `as`, by default x's, as normalize() gives it. Gradients may come
// through either output or both. Throws as normalize, and where x and branch differ.
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {}, std::optional<DType> as = {});

namespace reference {
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {}, std::optional<DType> as = {});
}

}  // namespace isonorm
