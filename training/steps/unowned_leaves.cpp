#include "training/steps/unowned_leaves.h"

#include <algorithm>
#include <unordered_set>

#include "core/system/warning.h"

namespace isonorm::training {

void UnownedLeaves::note(const Tensor& loss) {
  std::unordered_set<const autograd::Node*> seen;
  std::vector<std::shared_ptr<autograd::Node>> ahead = {loss.impl().node};
  while (!ahead.empty()) {
    const std::shared_ptr<autograd::Node> node = std::move(ahead.back());
    ahead.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    if (node->is_leaf() && !node->owned && !node->frozen) leaves_.push_back(node);
    for (const autograd::Edge& e : node->inputs) ahead.push_back(e.node);
  }
}

void UnownedLeaves::warn_of_rest(const Examples& batch) const {
  const std::vector<Tensor> given = batch.tensors();
  for (const std::weak_ptr<autograd::Node>& noted : leaves_) {
    const std::shared_ptr<autograd::Node> leaf = noted.lock();
    if (!leaf || !leaf->gradient.defined()) continue;
    if (std::ranges::any_of(given, [&](const Tensor& x) { return x.impl().node == leaf; })) continue;
    warn(text("step: a tensor of shape ", leaf->outputs[0].shape,
              " gets a gradient, and nothing trains it: no module has "
              "registered it, and no optimizer has it. A member that trains is nn::Parameter& w = add_parameter(\"w\", "
              "...); of another tensor take detach()"));
  }
}

}  // namespace isonorm::training
