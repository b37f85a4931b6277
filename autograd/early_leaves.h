// Internal: leaves whose gradients a backward finishes as early as it can, and the listener that it tells. All leaves
// are older than the ops, so a backward would come to them last. This class puts each leaf right after its oldest
// consumer. Nothing else changes its place, so all sums keep their order.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/frontier.h"

namespace isonorm::autograd {

class EarlyLeaves {
 public:
  // Passes the graph of `outputs` once. No backward is under way in it. Keeps a reference to `listener`. Throws if a
  // tensor in listener.leaves is the result of an op.
  EarlyLeaves(std::span<const Tensor> outputs, const GradientListener& listener);
  EarlyLeaves(std::span<const Tensor>, const GradientListener&&) = delete;
  EarlyLeaves(const EarlyLeaves&) = delete;
  EarlyLeaves& operator=(const EarlyLeaves&) = delete;

  // Makes the leaves wait for the backward that begins; tells of leaves that it does not come to.
  void begin(Frontier& frontier);
  // The number of the leaf that the backward has come to; none: nobody listens to it. Throws where it has been there.
  std::optional<size_t> number(const Node& leaf);

 private:
  struct Place {
    std::shared_ptr<Node> leaf;
    size_t number;
    std::optional<uint64_t> behind = {};  // Node::seq of its oldest consumer; none: the graph does not lead to it
    bool passed = false;
  };
  const GradientListener& listener_;
  std::unordered_map<const Node*, Place> places_;
};

}  // namespace isonorm::autograd
