// Residual addition and normalization in one pass over memory, forward and backward.
#pragma once

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

struct AddNorm {
  Tensor sum;     // x + branch: the residual stream goes on with it
  Tensor normed;  // normalize(sum): what the next branch reads
};

// sum = x + branch, normed = normalize(sum, spec, gain, bias). x and branch [..., width] of one shape and floating
// dtype; gain and bias [width] or undefined. Gradients may come through either output or both. Throws as normalize, and
// where x and branch differ.
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {});

namespace reference {
AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain = {},
                 const Tensor& bias = {});
}

}  // namespace isonorm
