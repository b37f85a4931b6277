// Internal: finds leaves that get a gradient although nothing trains them, such as a Tensor member with require_grad()
// that the module did not register.
#pragma once

#include <memory>
#include <vector>

#include "autograd/node.h"
#include "training/steps/objective.h"

namespace isonorm::training {

class UnownedLeaves {
 public:
  // Notes the leaves in the graph of `loss` that no module has registered and no optimizer owns. Call it before
  // backward().
  void note(const Tensor& loss);
  // Warns about each noted leaf that still exists and has a gradient, unless it is a tensor of the batch. Leaves that
  // an objective makes for itself (the points of a gradient penalty) are gone with the graph.
  void warn_of_rest(const Examples& batch) const;

 private:
  std::vector<std::weak_ptr<autograd::Node>> leaves_;
};

}  // namespace isonorm::training
