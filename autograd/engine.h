// backward() and the functions about a tensor's own gradient.
//
// Threads: several threads may run forwards, grad() and backward() through one model at once. Each thread needs a graph
// of its own: threads share leaves, but no results of ops. grad() gives the bits that it gives in one thread.
// backward() adds to the gradients of shared leaves as the threads arrive, so the order of additions varies and the
// sums are right up to rounding. A pass that meets another pass in its graph throws. Until the threads are done, nobody
// may read or set the gradients of shared leaves, step their optimizer, or add or remove their hooks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autograd/node.h"

namespace isonorm {

// Makes x a leaf whose gradient backward() fills in; returns x. With `on` false x becomes a frozen leaf: it takes no
// gradient, ops do not record anything for its sake, and the gradient that it had is gone. Throws where x is not
// floating or is the result of a recorded op.
const Tensor& require_grad(const Tensor& x, bool on = true);
// True if a gradient flows to x: x is a leaf that is not frozen, or was computed from one.
bool requires_grad(const Tensor& x);
// x.grad() is the gradient of a leaf: contiguous, with shape and dtype of x, and undefined before the first backward
// and if x is frozen. Throws if x is no leaf.

// Replaces the gradient of a leaf (undefined clears it): shares g's storage, or holds a copy where g is not contiguous.
// Throws where x is no leaf or a frozen one, or shape or dtype differ.
void set_grad(const Tensor& x, const Tensor& g);

// Is told of gradients during a backward.
struct GradientListener {
  std::vector<Tensor> leaves;  // each once
  // Called once for each, with its number, as soon as nothing more comes to leaves[i].grad() in this backward: right
  // after the oldest op that reads it; at the beginning if the loss does not depend on it. A part of checkpoint() may
  // read any leaf: then after the oldest part. An exception from it ends the backward.
  std::function<void(size_t i)> complete;
};

// Adds d loss / d leaf to the gradient of every leaf that `loss` was computed from, and releases the graph. `cotangent`
// (shape of loss) is d final / d loss; it may be left out if loss has one element. Throws if the loss is undefined or
// nothing requires a gradient, and on a second pass through a graph that is released.
struct BackwardOptions {
  bool retain_graph = false;  // the graph stays, with all that it keeps, for another backward
  // The gradients have a graph of their own, and can be differentiated like other results; the graph is retained. For
  // grad(). The rule of a fused op then runs the composition that defines the op. Throws, naming the op, in fused ops
  // and norms of bf16, in layers of bf16 whose weights are f32, and in functions over ranks.
  bool create_graph = false;
  // For backward() in the thread that has recorded the graph; null: no listener. It does not change the bits of
  // gradients. Throws if a leaf is the result of an op, and if a rule adds to a gradient that was complete
  // (Flow::follow).
  const GradientListener* listener = nullptr;
};
void backward(const Tensor& loss, const Tensor& cotangent = {}, BackwardOptions options = {});

// Sum over outputs of <cotangent, d output / d input> for each input (any tensor of the graph), touching no leaf's
// gradient. Zeros where an input has no influence. cotangents: one per output, or none where all outputs have one
// element. Releases the graph, unless it is to be retained.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> cotangents = {}, BackwardOptions options = {});
// The same of one output: grad(loss, {x, w}), grad(loss, net.parameters(), {.create_graph = true}).
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, const Tensor& cotangent = {},
                         BackwardOptions options = {});
inline std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, BackwardOptions options) {
  return grad(output, inputs, {}, options);
}

// Removes a hook of on_grad(). Copies remove the same hook. Dropping a handle does not remove the hook.
class HookHandle {
 public:
  HookHandle() = default;  // remove() does nothing
  HookHandle(std::weak_ptr<autograd::Node> node, std::weak_ptr<autograd::Hook> hook)
      : node_(std::move(node)), hook_(std::move(hook)) {}
  // The hook is not called any more. The hook itself may call this. Does nothing if the hook is removed already or the
  // graph is gone.
  void remove();

 private:
  std::weak_ptr<autograd::Node> node_;
  std::weak_ptr<autograd::Hook> hook_;
};

// Calls hook(gradient of x) when a backward has summed it; the result takes its place (return the argument to only
// look). Hooks of a tensor run in the order of their addition, until their handles remove them. If several threads
// differentiate through a leaf, each thread calls its hooks, perhaps at the same time. Throws if x takes no gradient or
// the hook is empty.
HookHandle on_grad(const Tensor& x, GradHook hook);

}  // namespace isonorm
