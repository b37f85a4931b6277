// The nodes that a backward is to pass, the youngest first. All consumers of a node are younger, so when a node is the
// youngest its gradient is complete. Nodes with a gradient under way stand here and nowhere else.
#pragma once

#include <algorithm>
#include <vector>

#include "autograd/node.h"

namespace isonorm {

class Frontier {
 public:
  Frontier() = default;
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;
  // An error on the way must not leave gradients behind in nodes that live on.
  ~Frontier() {
    while (!empty()) pop();
  }

  bool empty() const { return heap_.empty(); }
  Node& youngest() const { return *heap_.front(); }

  void push(Node& n) {
    if (std::exchange(n.waiting, true)) return;
    heap_.push_back(&n);
    std::push_heap(heap_.begin(), heap_.end(), older);
  }
  // Takes the youngest out, and the gradients of its outputs away.
  void pop() {
    Node& n = youngest();
    n.waiting = false;
    for (Slot& s : n.outputs) s.grad = {};
    std::pop_heap(heap_.begin(), heap_.end(), older);
    heap_.pop_back();
  }

 private:
  static bool older(const Node* a, const Node* b) { return a->seq < b->seq; }
  std::vector<Node*> heap_;
};

}  // namespace isonorm
