// One backward pass: the nodes still to visit, youngest first, and the gradients computed so far. All consumers of a
// node are younger, so when a node is the youngest its gradient is complete.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "autograd/node.h"
#include "core/memory/pool.h"

namespace isonorm::autograd {

// An op belongs to one graph: its node stores the gradients, and one pass at a time may use it. A leaf may be in the
// graphs of several threads, so each pass stores its own gradient for it.
class Frontier {
 public:
  Frontier() { heap_.reserve(pool::kLargest / sizeof(Waiting)); }
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;
  // After an error, clears the gradients left in nodes that live on.
  ~Frontier() {
    while (next()) {
    }
  }

  // Adds `gradient` to the gradient of an output of n, and pushes n.
  void add(Node& n, int output, Tensor gradient) {
    Leaf* const leaf = push_at(n, place(n));
    accumulate(leaf ? leaf->gradient : n.outputs[output].grad, std::move(gradient));
  }
  // Schedules n. Throws if another pass uses the op.
  void push(Node& n) { push_at(n, place(n)); }
  // Schedules a leaf right after the node numbered `seq`.
  void push_behind(Node& leaf, uint64_t seq) { push_at(leaf, 2 * seq); }
  // Keeps a node that a rule has made alive until the backward ends.
  void keep(std::shared_ptr<Node> n) { kept_.push_back(std::move(n)); }
  // Clears the gradients of the previous node; removes and returns the youngest. Null if none is left.
  Node* next() {
    if (now_.leaf) {
      now_.leaf->gradient = {};
    } else if (now_.node) {
      for (NodeOutput& s : now_.node->outputs) s.grad = {};
      now_.node->pass.store(nullptr, std::memory_order_release);
    }
    now_ = {};
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), older);
    now_ = heap_.back();
    heap_.pop_back();
    if (now_.leaf) now_.leaf->waiting = false;
    return now_.node;
  }
  // The gradient of an output of the node that next() returned last.
  Tensor& gradient(int output) { return now_.leaf ? now_.leaf->gradient : now_.node->outputs[output].grad; }

 private:
  struct Leaf {
    Tensor gradient;
    bool waiting = false;
  };
  struct Waiting {
    uint64_t place = 0;  // the greatest is next
    Node* node = nullptr;
    Leaf* leaf = nullptr;  // null: node is an op
  };

  static uint64_t place(const Node& n) { return 2 * n.seq + 1; }
  Leaf* push_at(Node& n, uint64_t place) {
    Leaf* leaf = nullptr;
    if (n.is_leaf()) {
      leaf = &leaves_[&n];
      if (std::exchange(leaf->waiting, true)) return leaf;
    } else {
      const Frontier* user = nullptr;
      if (!n.pass.compare_exchange_strong(user, this, std::memory_order_acquire)) {
        check(user == this, "backward: another backward is running through the graph of '", n.name,
              "'; run one at a time (threads may share leaves, but no results of ops)");
        return nullptr;
      }
    }
    heap_.push_back({place, &n, leaf});
    std::push_heap(heap_.begin(), heap_.end(), older);
    return leaf;
  }
  static bool older(const Waiting& a, const Waiting& b) { return a.place < b.place; }

  std::vector<std::shared_ptr<Node>> kept_;
  std::vector<Waiting, pool::Allocator<Waiting>> heap_;
  Waiting now_;  // the result of the last next()
  std::unordered_map<const Node*, Leaf, std::hash<const Node*>, std::equal_to<>,
                     pool::Allocator<std::pair<const Node* const, Leaf>>>
      leaves_;
};

}  // namespace isonorm::autograd
