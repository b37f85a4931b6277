// backward() and the functions about a tensor's own gradient.
//
// Threads: several threads may run forwards, grad() and backward() through one model at once. Each thread needs a graph
// of its own: threads share leaves, but no results of ops. grad() gives the same bits as in a single thread. backward()
// adds to the gradients of shared leaves as the threads arrive, so the sums are equal up to
// rounding. A pass throws if another pass is running in its graph. Until the threads are done, nobody may read or set
// the gradients of shared leaves, step their optimizer, or add or remove their hooks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autograd/node.h"

namespace isonorm {

// Makes x a leaf whose gradient backward() fills in; returns x. With on = false x becomes a frozen leaf: it takes no
// gradient, ops are not recorded because of it, and its present gradient is cleared. Throws if x is not floating or is
// the result of a recorded op.
const Tensor& require_grad(const Tensor& x, bool on = true);
// True if a gradient flows to x: x is a leaf that is not frozen, or was computed from one.
bool requires_grad(const Tensor& x);
// x.grad() is the gradient of a leaf: contiguous, with shape and dtype of x. It is undefined before the first backward
// and if x is frozen. Throws if x is not a leaf.

// Replaces the gradient of a leaf; an undefined g clears it. Shares g's storage if g is contiguous, else copies g.
// Throws if x is not a leaf or is frozen, or if shape, dtype or device differ.
void set_grad(const Tensor& x, const Tensor& g);

// Listens to the gradients of leaves during a backward.
struct GradientListener {
  std::vector<Tensor> leaves;  // each once
  // Called once for each leaf, with its index, as soon as leaves[i].grad() is final in this backward: right after the
  // oldest op that reads the leaf, or at the beginning if the loss does not depend on it. A checkpointed part
  // (checkpoint()) may read any leaf, so every leaf also waits for the oldest of these parts. An exception from the
  // callback ends the backward.
  std::function<void(size_t i)> complete;
};

// Adds d loss / d leaf to the gradient of every leaf that `loss` was computed from, and releases the graph. `cotangent`
// (shape of loss) is d final / d loss; it may be left out if loss has one element. Throws if the loss is undefined, if
// nothing requires a gradient, or if the graph was already released.
struct BackwardOptions {
  bool retain_graph = false;  // keeps the graph and its saved tensors for another backward
  // For grad(): the gradients get a graph of their own and can be differentiated again; the graph is retained. The rule
  // of a fused op then runs the composition that defines the op. Throws, naming the op, for fused ops and norms in
  // bf16, for layers in bf16 with f32 weights, and for functions over ranks.
  bool create_graph = false;
  // Used by backward() in the thread that recorded the graph; null: no listener. It does not change the bits of
  // gradients. Throws if a leaf is the result of an op, or if a rule adds to a gradient that was already final
  // (Flow::follow).
  const GradientListener* listener = nullptr;
};
void backward(const Tensor& loss, const Tensor& cotangent = {}, BackwardOptions options = {});

// Returns, for each input (any tensor of the graph), the sum over outputs of <cotangent, d output / d input>. Gradients
// of leaves are not touched. Zeros if no output depends on the input. cotangents: one per output; may be empty if all
// outputs have one element. Releases the graph unless the options retain it.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> cotangents = {}, BackwardOptions options = {});
// A single output: grad(loss, {x, w}), grad(loss, net.parameters(), {.create_graph = true}).
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, const Tensor& cotangent = {},
                         BackwardOptions options = {});
inline std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, BackwardOptions options) {
  return grad(output, inputs, {}, options);
}

// Removes a hook of on_grad(). Copies remove the same hook. Destroying a handle does not remove the hook.
class HookHandle {
 public:
  HookHandle() = default;  // remove() does nothing
  HookHandle(std::weak_ptr<autograd::Node> node, std::weak_ptr<autograd::Hook> hook)
      : node_(std::move(node)), hook_(std::move(hook)) {}
  // Removes the hook; the hook itself may call this. Does nothing if it is already removed or the graph is gone.
  void remove();

 private:
  std::weak_ptr<autograd::Node> node_;
  std::weak_ptr<autograd::Hook> hook_;
};

// Calls hook(gradient of x) when a backward has summed the gradient; the returned tensor replaces it (to only look,
// return the argument). Hooks of a tensor run in order of addition. If several threads differentiate
// through a leaf, each thread calls its hooks, perhaps at the same time. Throws if x takes no gradient or the hook is
// empty.
HookHandle on_grad(const Tensor& x, GradHook hook);

}  // namespace isonorm
