// Optimizers by name.
#pragma once

#include <memory>
#include <vector>

#include "equivalence/options.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace isonorm::equivalence {

// The optimizer that `options` name, with their rate and decay, over the tensors of `parameters`.
std::unique_ptr<optim::Optimizer> build_optimizer(const ProofOptions& options,
                                                  const std::vector<nn::Parameter>& parameters);

}  // namespace isonorm::equivalence
