// Residual addition and normalization in one pass over memory, forward and backward.
#pragma once

#include <optional>

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

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
