#include "autograd/early_leaves.h"

#include <algorithm>

namespace isonorm::autograd {

EarlyLeaves::EarlyLeaves(std::span<const Tensor> outputs, const GradientListener& listener) : listener_(listener) {
  for (size_t i = 0; i < listener.leaves.size(); ++i) {
    const std::shared_ptr<Node>& n = listener.leaves[i].impl().node;
    check(!n || n->is_leaf(), "backward: listener: leaves[", i, "] of shape ", listener.leaves[i].shape(),
          " is not a leaf");
    if (n) places_.insert({n.get(), {n, i}});
  }
  Frontier graph;  // visits the youngest node first, so the last assignment is from the oldest consumer
  for (const Tensor& y : outputs)
    if (Node* n = y.impl().node.get()) graph.push(*n);
  std::optional<uint64_t> last;  // the oldest op that may reach any leaf
  while (Node* const n = graph.next()) {
    if (const auto at = places_.find(n); at != places_.end()) at->second.behind = n->seq;  // itself an output
    if (n->reaches_unseen) last = n->seq;
    for (const Edge& e : n->inputs)
      if (!e.node)
        continue;
      else if (const auto at = places_.find(e.node.get()); at != places_.end())
        at->second.behind = n->seq;
      else
        graph.push(*e.node);
  }
  if (last)
    for (auto& [_, place] : places_) place.behind = std::min(*last, place.behind.value_or(*last));
}

void EarlyLeaves::begin(Frontier& frontier) {
  for (size_t i = 0; i < listener_.leaves.size(); ++i) {
    Node* const n = listener_.leaves[i].impl().node.get();
    if (n && places_.at(n).behind)
      frontier.push_behind(*n, *places_.at(n).behind);
    else
      listener_.complete(i);
  }
}

std::optional<size_t> EarlyLeaves::number(const Node& leaf) {
  const auto at = places_.find(&leaf);
  if (at == places_.end()) return {};
  check(!std::exchange(at->second.passed, true), "backward: a leaf of shape ", leaf.outputs[0].shape,
        " got a gradient after all its known readers had run: a rule reached it by Flow::follow");
  return at->second.number;
}

}  // namespace isonorm::autograd
