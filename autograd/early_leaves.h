// Internal: makes a backward finish the gradients of chosen leaves as early as possible and notify a listener. Leaves
// are older than all ops, so a backward normally reaches them last. EarlyLeaves schedules each leaf right after its
// oldest consumer. Nothing else is reordered, so all sums keep their order.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/frontier.h"

namespace isonorm::autograd {

class EarlyLeaves {
 public:
  // Traverses the graph of `outputs` once; no backward may be running in it. Keeps a reference to `listener`. Throws if
  // a tensor in listener.leaves is the result of an op.
  EarlyLeaves(std::span<const Tensor> outputs, const GradientListener& listener);
  EarlyLeaves(std::span<const Tensor>, const GradientListener&&) = delete;
  EarlyLeaves(const EarlyLeaves&) = delete;
  EarlyLeaves& operator=(const EarlyLeaves&) = delete;

  // Schedules the leaves in a backward that begins. Notifies the listener at once of leaves that the backward does not
  // reach.
  void begin(Frontier& frontier);
  // Called when the backward reaches a leaf: its index in listener.leaves, or none if it is not there. Throws if the
  // backward has reached it before.
  std::optional<size_t> number(const Node& leaf);

 private:
  struct Place {
    std::shared_ptr<Node> leaf;
    size_t number;
    std::optional<uint64_t> behind = {};  // Node::seq of its oldest consumer; none: not in the graph
    bool passed = false;
  };
  const GradientListener& listener_;
  std::unordered_map<const Node*, Place> places_;
};

}  // namespace isonorm::autograd
