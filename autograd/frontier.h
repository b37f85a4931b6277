// The nodes that a backward is to pass, the youngest first. All consumers of a node are younger, so when a node is the
// youngest its gradient is complete. Nodes with a gradient under way stand here and nowhere else.
#pragma once

#include <algorithm>
#include <vector>

#include "autograd/node.h"

namespace isonorm::autograd {

class Frontier {
 public:
  Frontier() = default;
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;
  // An error on the way must not leave gradients behind in nodes that live on.
  ~Frontier() {
    while (next()) {
    }
  }

  void push(Node& n) {
    if (std::exchange(n.waiting, true)) return;
    heap_.push_back(&n);
    std::push_heap(heap_.begin(), heap_.end(), older);
  }
  // Holds a node that a rule has made until the backward ends.
  void keep(std::shared_ptr<Node> n) { kept_.push_back(std::move(n)); }
  // Takes the gradients of the node before away, and the youngest out. Null: there is none left.
  Node* next() {
    if (now_)
      for (NodeOutput& s : now_->outputs) s.grad = {};
    if (heap_.empty()) return now_ = nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), older);
    now_ = heap_.back();
    heap_.pop_back();
    now_->waiting = false;
    return now_;
  }

 private:
  static bool older(const Node* a, const Node* b) { return a->seq < b->seq; }
  std::vector<std::shared_ptr<Node>> kept_;
  std::vector<Node*> heap_;
  Node* now_ = nullptr;  // what next() gave last
};

}  // namespace isonorm::autograd
