// The graph of reverse-mode differentiation. A Node is one recorded operation, or a leaf that owns a gradient; its rule
// turns the gradients of its outputs into gradients of its inputs. Nodes point only to older nodes, so the graph has no
// cycles.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/rule.h"
#include "autograd/saved.h"
#include "core/dims.h"
#include "core/tensor.h"

namespace isonorm {

// `size` items T(), stored inside the list itself if there are at most N.
template <class T, size_t N> class Few {
 public:
  explicit Few(size_t size) : size_(size) {
    if (size > N) items_ = new T[size];
  }
  ~Few() {
    if (items_ != inside_) delete[] items_;
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Item i, counted from the end if i is negative. Throws "rule: index 2 is out of range for 1 entry".
  T& operator[](int64_t i) { return items_[place(i)]; }
  const T& operator[](int64_t i) const { return items_[place(i)]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

 private:
  size_t place(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return at < size_ ? at : static_cast<size_t>(normalize_index(i, static_cast<int64_t>(size_), "rule"));
  }

  size_t size_;
  T inside_[N];
  T* items_ = inside_;
};

// The graph of reverse-mode differentiation. A Node is one recorded operation, or a leaf that owns a gradient; its rule
// turns the gradients of its outputs into gradients of its inputs. Nodes point only to older nodes, so the graph has no
// cycles.

using GradHook = std::function<Tensor(const Tensor&)>;

// A separate namespace, since programs may have nodes and edges, too.
namespace autograd {

class Frontier;

// An input of a node. If it takes a gradient, it is output number `output` of `node`. If not, `node` is null, and
// `constant` identifies the input without keeping it alive.
struct Edge {
  std::shared_ptr<Node> node;
  union {
    const Storage* constant = nullptr;  // null: the input is undefined
    int output;
  };
};

// One output of a node: shape, dtype and device of its gradient, and the gradient while a backward runs. (Several
// graphs may share a leaf, so Frontier stores a leaf's gradient.)
struct NodeOutput {
  Dims shape;
  DType dtype = DType::f32;
  Device device = kCpu;
  Tensor grad;
};

// A function that on_grad() has added to an output.
struct Hook {
  int output;
  GradHook run;
  bool removed = false;
};

struct Node : std::enable_shared_from_this<Node> {
  const char* name;             // name of the op, a string with static lifetime; "leaf" for a leaf
  uint64_t seq;                 // order of creation; consumers of this node have greater numbers; 0 for a leaf
  bool frozen = false;          // a leaf that takes no gradient: see require_grad()
  bool owned = false;           // a leaf that a module has registered or an optimizer trains
  bool tied = false;            // a leaf that may have several names in modules; false: it has at most one
  bool is_view = false;         // it has one input, which takes a gradient and shares memory with the first output
  bool reaches_unseen = false;  // its rule calls follow() on ops that may reach leaves that are not among its inputs
  Few<Edge, 3> inputs;          // empty for a leaf
  Few<NodeOutput, 1> outputs;
  Rule backward;    // empty for a leaf and after it has run, unless the graph is retained
  Tensor gradient;  // leaf: the user's gradient, summed over backward passes
  // The backward pass in which this node waits or whose rule runs. Leaf: the pass that is adding to `gradient`.
  std::atomic<const Frontier*> pass = nullptr;
  std::vector<std::shared_ptr<Hook>> hooks;
  std::string path;  // module path, recorded in anomaly mode and for profiles

  Node(const char* op, size_t input_count, size_t output_count);
  ~Node();  // iterative: a chain of a million nodes does not overflow the stack
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  bool is_leaf() const { return inputs.empty(); }
};

}  // namespace autograd

// A node as its backward rule sees it. Inputs and outputs are numbered as in the call of track(); negative numbers
// count from the end. Every function throws if a number is out of range. The engine puts the op's name before every
// error of a rule.
class Flow {
 public:
  Flow(autograd::Node& node, autograd::Frontier& frontier, bool one, bool retained)
      : node_(node), frontier_(frontier), one_(one), retained_(retained) {}
  // Gradient of output i; zeros if no consumer gave one.
  const Tensor& out(int i = 0) {
    autograd::NodeOutput& s = output(i);
    if (!s.grad.defined()) s.grad = zeros(s);
    return s.grad;
  }
  // True if out() is the 1 that backward() begins with; does not read the tensor. Used by rules of losses.
  bool out_is_one() const { return one_; }
  // True if the rule may run again: it must not give away its saved tensors.
  bool retained() const { return retained_; }
  // out(i), moved out of the node, for a rule that passes it on.
  Tensor take(int i = 0) {
    out(i);
    return std::exchange(output(i).grad, {});
  }
  bool has_out(int i) const { return output(i).grad.defined(); }
  // Memory for a result like out(i): out(i) itself, to be overwritten, if it is contiguous and nobody else holds it.
  Tensor reuse(int i = 0);
  // True if input i takes a gradient. A rule need not compute other gradients.
  bool wants(int i) const { return input(i).node != nullptr; }
  // The dtype of input i. Throws if input i takes no gradient.
  DType dtype(int i) const;
  // Adds `gradient` to the gradient of input i. Dimensions along which the input was broadcast are summed; the dtype
  // becomes the input's.
  void give(int i, Tensor gradient);
  // `data` attached to the graph of input i: gradients of its uses flow to input i. Undefined if data is.
  Tensor attached(int i, const Tensor& data) const;
  Tensor attached(int i, const Saved& saved) const { return attached(i, saved.data()); }
  // Zeros attached to the graph of input i, for an input on whose values no gradient depends, such as a bias; undefined
  // if input i takes no gradient.
  Tensor attached(int i) const;
  // Adds `gradient` to the gradient of y and continues the backward through the ops that made y, which the rule has
  // recorded from attached() inputs and leaves. If the leaves are not among the inputs, the node must set
  // reaches_unseen.
  void follow(const Tensor& y, Tensor gradient);
  // True if the gradients need a graph (create_graph). A kernel's result has no graph, so a rule that calls a kernel
  // must then follow the composition that defines the op. Throws in bf16: a composition rounds more often than the
  // kernel.
  bool needs_composition() const;
  // `composition` holds the same outputs, computed from attached() inputs by recorded ops. Adds the gradient of each
  // output to its counterpart.
  void follow(std::initializer_list<Tensor> composition);

 private:
  static Tensor zeros(const autograd::NodeOutput& like);
  autograd::Edge& input(int i) const { return node_.inputs.begin()[place("input", i, node_.inputs.size())]; }
  autograd::NodeOutput& output(int i) const { return node_.outputs.begin()[place("output", i, node_.outputs.size())]; }
  size_t place(const char* what, int i, size_t count) const {
    const size_t at = i < 0 ? count + static_cast<size_t>(i) : static_cast<size_t>(i);
    check(at < count, "its rule names ", what, ' ', i, ", ", what, "s are 0 to ", count - 1);
    return at;
  }

  autograd::Node& node_;
  autograd::Frontier& frontier_;
  const bool one_, retained_;
};

// Records an op. If gradients are on and an input takes one, makes a node with an edge to each input, attaches it to
// the outputs and returns it; the caller sets `backward`. Otherwise returns nullptr. Undefined inputs take no gradient.
// Throws if there is no output or one is undefined and, in anomaly mode, if one has a NaN. User-defined ops call this
// like the built-in ones; see docs/adding_an_op.md.
autograd::Node* track(const char* name, std::initializer_list<const Tensor*> outputs,
                      std::initializer_list<const Tensor*> inputs);
autograd::Node* track(const char* name, std::span<const Tensor> outputs, std::span<const Tensor> inputs);

// True if x would cause an op to be recorded now.
bool takes_gradient(const Tensor& x);

// True if a result may overwrite x: x is contiguous, and nothing but this handle refers to its elements.
bool is_sole(const Tensor& x);

// Adds `gradient` to `sum`: moves it there if `sum` is undefined, adds in place if nobody else holds `sum`, else makes
// a new tensor. Records the sum if either takes a gradient.
void accumulate(Tensor& sum, Tensor gradient);

}  // namespace isonorm

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
