// Einstein summation: sums of products over named dimensions.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

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
