// Sums of products by the names of dimensions.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// The sum of products that a formula as NumPy's states, "bij,bjk->bik": a letter (a to z, A to Z) for each dimension of
// each operand; dimensions of one letter go together, and those that the result does not name are summed. Without "->"
// the result has the letters that occur once, in alphabetical order. Spaces do not matter. Operands of one floating
// dtype; they are multiplied from left to right, two at a time, as products of matrices. Throws where letters and ranks
// do not fit, two sizes of one letter differ (1 does not stretch), a letter stands twice in an operand (a diagonal) or
// in the result, the result names one that no operand has, or a product has more than eight dimensions.
Tensor einsum(const std::string& formula, const std::vector<Tensor>& operands);

}  // namespace isonorm
