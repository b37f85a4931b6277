// Wrong orders at the end of a residual branch, for negative controls: the map of the stream before dropout and layer
// scale. It must be last: P W x has zero mean, but mask P W x and diag(scale) P W x have not, and P mask P W is not
// P mask W either.
#pragma once

#include "nn/module.h"

namespace isonorm::equivalence {

enum class BranchOrder { map_first, map_first_and_last };

// Gives this order to the branches of a model that was put on a stream in raw storage.
void set_branch_order(nn::Module& model, BranchOrder order);

}  // namespace isonorm::equivalence
