// Internal: observes the ops that a thread records.
#pragma once

#include <functional>
#include <span>

#include "autograd/node.h"

namespace isonorm::autograd {

// While it lives, `see` is called for every op that this thread records, in order. Watches nest: the outer one sees
// each op first.
class OpWatch {
 public:
  // node: the recorded op; results: its outputs, in the graph, with their values.
  using See = std::function<void(const Node& node, std::span<const Tensor* const> results)>;

  [[nodiscard]] explicit OpWatch(See see);
  ~OpWatch();
  OpWatch(const OpWatch&) = delete;
  OpWatch& operator=(const OpWatch&) = delete;

  // The watch of this thread, for track(); null if there is none.
  static const OpWatch* current();
  void show(const Node& node, std::span<const Tensor* const> results) const {
    if (outer_) outer_->show(node, results);
    see_(node, results);
  }

 private:
  See see_;
  const OpWatch* outer_;
};

}  // namespace isonorm::autograd
