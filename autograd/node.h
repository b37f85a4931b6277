// The graph of reverse-mode differentiation. A Node is one recorded operation (or a leaf that owns a gradient); its
// rule turns the gradients of its outputs into gradients of its inputs. Nodes point only to older nodes, so the graph
// has no cycles.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/few.h"
#include "autograd/rule.h"
#include "autograd/saved.h"
#include "core/tensor.h"

namespace isonorm {

using GradHook = std::function<Tensor(const Tensor&)>;

// Not in isonorm itself: programs have nodes and edges of their own.
namespace autograd {

class Frontier;

// An input of a node. If it takes a gradient, it is output number `output` of `node`. If not, `node` is null, and
// `constant` tells the input from other tensors; the node does not keep it alive.
struct Edge {
  std::shared_ptr<Node> node;
  union {
    const Storage* constant = nullptr;  // null: the input is undefined
    int output;
  };
};

// One output of a node: what its gradient must look like, and the gradient while a backward is under way (of a leaf, which
// several graphs may share, Frontier holds that).
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
  const char* name;             // of the op, a string that lives for ever; "leaf" for a leaf
  uint64_t seq;                 // order of creation: every consumer of this node has a greater one; 0 for a leaf
  bool frozen = false;          // a leaf that takes no gradient: see require_grad()
  bool owned = false;           // a leaf that a module has registered, or an optimizer has: somebody trains it
  bool tied = false;            // a leaf that may have several names in modules; false: it has one at most
  bool is_view = false;         // its first output shares memory with an input that takes a gradient: the only one
  bool reaches_unseen = false;  // its rule follow()s ops to leaves that are not among its inputs
  Few<Edge, 3> inputs;          // empty for a leaf
  Few<NodeOutput, 1> outputs;
  Rule backward;    // empty for a leaf, and after it has run
  Tensor gradient;  // of a leaf: the user's gradient, summed over backward passes
  // The backward pass that this node waits in or that runs its rule. Of a leaf: the pass that adds to `gradient` now.
  std::atomic<const Frontier*> pass = nullptr;
  std::vector<std::shared_ptr<Hook>> hooks;
  std::string path;  // module path, recorded in anomaly mode and for a profile

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
  // True if out() is the 1 that backward() begins with; does not read it. Rules of losses use it.
  bool out_is_one() const { return one_; }
  // True if the rule may run again: it must not give away its saved tensors.
  bool retained() const { return retained_; }
  // out(i) for a rule that passes it on: the node no longer holds it.
  Tensor take(int i = 0) {
    out(i);
    return std::exchange(output(i).grad, {});
  }
  bool has_out(int i) const { return output(i).grad.defined(); }
  // Room for a result like out(i): out(i) itself, to be overwritten, if it is contiguous and nobody else holds it.
  Tensor reuse(int i = 0);
  // True if input i takes a gradient. A rule need not compute other gradients.
  bool wants(int i) const { return input(i).node != nullptr; }
  // The dtype of input i. Throws if input i takes no gradient.
  DType dtype(int i) const;
  // Adds `gradient` to the gradient of input i. Dimensions along which the input was broadcast are summed; the dtype
  // becomes the input's.
  void give(int i, Tensor gradient);
  // `data` with the graph of input i: gradients of its uses flow to input i. Undefined if data is.
  Tensor attached(int i, const Tensor& data) const;
  Tensor attached(int i, const Saved& saved) const { return attached(i, saved.data()); }
  // Zeros with the graph of input i, for an input whose values no gradient depends on, such as a bias; undefined if input i
  // takes no gradient.
  Tensor attached(int i) const;
  // Adds `gradient` to the gradient of y. The rule has recorded the ops that made y from attached() inputs and leaves,
  // and the backward continues through them. If the leaves are not among the inputs, the node says so (reaches_unseen).
  void follow(const Tensor& y, Tensor gradient);
  // True if the gradients need a graph (create_graph). A kernel does not give one, so a rule that calls a kernel then
  // follows the composition that defines the op. Throws in bf16: a composition rounds more often than
  // the kernel.
  bool needs_composition() const;
  // `composition` holds the same outputs, made of attached() inputs by recorded ops. Adds the gradient of each output
  // to its counterpart.
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

// Records an op: when gradients are on and an input takes one, makes a node with an edge to each input, attaches it to
// the outputs and returns it for the caller to set `backward`; otherwise returns nullptr. Undefined inputs count as
// taking none. Throws if there is no output or one is undefined and, in anomaly mode, if one has a NaN. User-defined
// ops call this as the built-in ones do; see docs/adding_an_op.md.
autograd::Node* track(const char* name, std::initializer_list<const Tensor*> outputs,
                      std::initializer_list<const Tensor*> inputs);
autograd::Node* track(const char* name, std::span<const Tensor> outputs, std::span<const Tensor> inputs);

// True if an op that sees x now would be recorded for its sake.
bool takes_gradient(const Tensor& x);

// True if a result may overwrite x: x is contiguous, and nothing but this handle refers to its elements.
bool is_sole(const Tensor& x);

// Adds `gradient` to `sum`: takes it over if `sum` is undefined, adds in place if nobody else holds `sum`, else makes a
// new tensor. Records the sum if either takes a gradient.
void accumulate(Tensor& sum, Tensor gradient);

}  // namespace isonorm
