#include "autograd/engine.h"

#include <algorithm>
#include <optional>

#include "autograd/early_leaves.h"
#include "autograd/frontier.h"
#include "autograd/grad_mode.h"
#include "core/kernels/copy.h"
#include "core/view.h"

namespace isonorm {
namespace {

using autograd::Node;

Node& leaf_of(const Tensor& x, const char* op) {
  Node* n = x.impl().node.get();
  check(n && n->is_leaf() && !n->backward, op, ": the tensor of shape ", x.shape(),
        " is not a leaf that requires a gradient");
  return *n;
}

// Returns g, or a copy if something else refers to its elements: an optimizer will change it in place.
Tensor owned(Tensor g) { return is_sole(g) ? std::move(g) : detached::clone(g); }

// Adds g to the gradient of a leaf. If several threads arrive at once, each waits for its turn.
void add_to_leaf(Node& leaf, Tensor g, const autograd::Frontier& pass) {
  struct Turn {
    std::atomic<const autograd::Frontier*>& taken;
    Turn(std::atomic<const autograd::Frontier*>& taken, const autograd::Frontier* by) : taken(taken) {
      for (const autograd::Frontier* other = nullptr;
           !taken.compare_exchange_weak(other, by, std::memory_order_acquire); other = nullptr)
        taken.wait(other);
    }
    ~Turn() {
      taken.store(nullptr, std::memory_order_release);
      taken.notify_one();
    }
  };
  g = owned(std::move(g));
  const Turn turn(leaf.pass, &pass);
  accumulate(leaf.gradient, std::move(g));
}

// A cotangent of 1 made by backward(). Holding it here keeps rules from changing it in place; a hook can, so is()
// compares the version.
struct One {
  Tensor tensor;
  uint32_t version;
  bool is(const Tensor& g) const {
    return g.defined() && &g.impl() == &tensor.impl() && g.impl().storage->version() == version;
  }
};

// Replaces the gradients of n's outputs by the results of their hooks.
void run_hooks(const Node& n, autograd::Frontier& frontier) {
  const std::vector<std::shared_ptr<autograd::Hook>> hooks = n.hooks;  // a hook may remove itself
  for (const auto& hook : hooks) {
    Tensor& g = frontier.gradient(hook->output);
    if (!g.defined() || hook->removed) continue;
    Tensor changed = hook->run(g);
    check(changed.device() == g.device(), "on_grad: the hook returned a tensor on ", changed.device(), ", expected ",
          g.device());
    check(changed.shape() == g.shape() && changed.dtype() == g.dtype(), "on_grad: the hook returned ", changed.dtype(),
          ' ', changed.shape(), ", expected ", g.dtype(), ' ', g.shape());
    g = changed;
  }
}

// Errors from the rule name the op, and its module if that is recorded.
void run_rule(Node& n, Flow& flow, bool create_graph) {
  try {
    // In bf16 needs_composition() throws its own message: a rule that keeps a rounded weight is differentiable in other
    // dtypes.
    check(!create_graph || n.backward.is_differentiable() || !flow.needs_composition(),
          "it has no second derivative: its rule is not made of ops (create_graph; docs/ops.md lists those that have "
          "one)");
    n.backward(flow);
  } catch (Error& e) {
    e.set_message(text(n.path, n.path.empty() ? "" : ": ", n.name, ": ", e.what()));
    throw;
  }
}

// Runs the backward from the given outputs. With `wanted`, collects the gradients of these tensors instead of the
// leaves'.
void run(std::span<const Tensor> outputs, std::span<const Tensor> cotangents, std::span<const Tensor> wanted,
         std::vector<Tensor>* collected, BackwardOptions options) {
  check(cotangents.empty() || cotangents.size() == outputs.size(), "backward: ", cotangents.size(), " cotangents for ",
        outputs.size(), " outputs");
  std::optional<NoGrad> no_grad;
  std::optional<Recording> recording;
  options.create_graph ? void(recording.emplace()) : void(no_grad.emplace());
  std::vector<std::shared_ptr<Node>> roots;  // keep the graph alive even if a hook releases it
  std::vector<One> ones;                     // cotangents that the caller left out
  std::optional<autograd::EarlyLeaves> early;
  if (options.listener) early.emplace(outputs, *options.listener);
  autograd::Frontier frontier;

  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    const std::shared_ptr<Node>& n = y.impl().node;
    check(requires_grad(y), "backward: the tensor of shape ", y.shape(),
          " does not depend on a leaf that requires a gradient: all its inputs are constants, detached or frozen, or "
          "it was computed under NoGrad (gradients depend on leaves if grad() made them with create_graph)");
    Tensor g = i < cotangents.size() ? cotangents[i] : Tensor();
    if (!g.defined()) {
      check(y.numel() == 1, "backward: the tensor has shape ", y.shape(),
            ", expected a loss of one element: reduce it by mean() or sum(), or give a cotangent of its shape");
      g = empty(y.shape(), y.options());
      kernels::fill(g, 1);
      ones.push_back({g, g.impl().storage->version()});
    }
    check(g.device() == y.device(), "backward: the cotangent lies on ", g.device(), ", the tensor on ", y.device());
    check(g.shape() == y.shape() && g.dtype() == y.dtype(), "backward: the cotangent is ", g.dtype(), ' ', g.shape(),
          ", the tensor ", y.dtype(), ' ', y.shape());
    frontier.add(*n, y.impl().output, std::move(g));
    roots.push_back(n);
  }
  if (early) early->begin(frontier);

  while (Node* const next = frontier.next()) {
    Node& n = *next;
    if (!n.hooks.empty()) run_hooks(n, frontier);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].impl().node.get() == &n) (*collected)[i] = frontier.gradient(wanted[i].impl().output);
    if (n.is_leaf()) {
      const std::optional<size_t> heard = early ? early->number(n) : std::nullopt;
      Tensor& g = frontier.gradient(0);  // undefined if only the listener asks for this leaf
      if (!collected && !n.frozen && g.defined()) add_to_leaf(n, std::move(g), frontier);
      if (heard) options.listener->complete(*heard);
    } else {
      check(n.backward.is_set(), n.name, ": it has no rule: set `backward` of the node that track() returned");
      check(static_cast<bool>(n.backward), "backward: the graph of '", n.name,
            "' was already used by a backward and released; run the forward again, detach() a state that comes from an "
            "earlier step, or give the first backward retain_graph");
      const Tensor& g = n.outputs[0].grad;
      const bool one = std::any_of(ones.begin(), ones.end(), [&](const One& o) { return o.is(g); });
      const bool retained = options.retain_graph || options.create_graph;
      const Attaching attaching(options.create_graph ? &n : nullptr);
      Flow flow(n, frontier, one, retained);
      std::optional<profile::Backward> profiled;
      if (profile::recording()) profiled.emplace(n.path);
      run_rule(n, flow, options.create_graph);
      if (!retained) n.backward.clear();
    }
  }
}

}  // namespace

const Tensor& require_grad(const Tensor& x, bool on) {
  TensorImpl& t = x.impl();
  check(is_floating(t.dtype), "require_grad: dtype is ", t.dtype, ", expected f32, f64 or bf16");
  check(!t.node || t.node->is_leaf(), "require_grad: the tensor of shape ", t.shape, " is the result of '",
        t.node ? t.node->name : "", "'; detach it first");
  if (!t.node) {
    t.node = pool::make_shared<Node>("leaf", 0, 1);
    t.node->outputs[0] = {t.shape, t.dtype, t.storage->device(), {}};
    t.output = 0;
  }
  t.node->frozen = !on;
  if (!on) t.node->gradient = {};
  return x;
}

bool requires_grad(const Tensor& x) {
  const Node* n = x.impl().node.get();
  return n && !n->frozen;
}

Tensor Tensor::grad() const { return leaf_of(*this, "grad").gradient; }

void set_grad(const Tensor& x, const Tensor& g) {
  Node& n = leaf_of(x, "set_grad");
  if (g.defined()) {
    check(!n.frozen, "set_grad: the leaf of shape ", x.shape(), " is frozen");
    check(g.device() == x.device(), "set_grad: the gradient lies on ", g.device(), ", the tensor on ", x.device());
    check(g.shape() == x.shape() && g.dtype() == x.dtype(), "set_grad: the gradient is ", g.dtype(), ' ', g.shape(),
          ", the tensor ", x.dtype(), ' ', x.shape());
  }
  n.gradient = g.defined() ? detach(detached::contiguous(g)) : g;
}

void backward(const Tensor& loss, const Tensor& cotangent, BackwardOptions options) {
  check(!options.create_graph, "backward: create_graph is for grad(), the gradient of a leaf has no graph");
  check(loss.defined(), "backward: the loss is undefined, a Tensor that nothing was assigned to");
  run({&loss, 1}, cotangent.defined() ? std::span<const Tensor>(&cotangent, 1) : std::span<const Tensor>(), {}, nullptr,
      options);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> cotangents, BackwardOptions options) {
  std::vector<Tensor> result(inputs.size());
  for (const Tensor& y : outputs)
    check(y.defined(), "grad: output ", &y - outputs.data(), " is undefined, a Tensor that nothing was assigned to");
  for (const Tensor& x : inputs) {
    check(x.defined(), "grad: input ", &x - inputs.data(), " is undefined, a Tensor that nothing was assigned to");
    check(requires_grad(x), "grad: an input of shape ", x.shape(), " does not require a gradient");
  }
  check(!options.listener, "grad: a listener is for backward(), leaves get nothing here");
  run(outputs, cotangents, inputs, &result, options);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!result[i].defined()) kernels::fill(result[i] = empty_like(inputs[i]), 0);
  return result;
}

std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& inputs, const Tensor& cotangent,
                         BackwardOptions options) {
  return grad(std::span(&output, 1), inputs,
              cotangent.defined() ? std::span<const Tensor>(&cotangent, 1) : std::span<const Tensor>(), options);
}

HookHandle on_grad(const Tensor& x, GradHook hook) {
  check(requires_grad(x), "on_grad: the tensor of shape ", x.shape(), " does not require a gradient");
  check(static_cast<bool>(hook), "on_grad: the hook is empty");
  const std::shared_ptr<Node>& node = x.impl().node;
  node->hooks.push_back(std::make_shared<autograd::Hook>(autograd::Hook{x.impl().output, std::move(hook)}));
  return HookHandle(node, node->hooks.back());
}

void HookHandle::remove() {
  const std::shared_ptr<Node> node = node_.lock();
  const std::shared_ptr<autograd::Hook> hook = hook_.lock();
  if (!node || !hook) return;
  hook->removed = true;
  std::erase(node->hooks, hook);
}

}  // namespace isonorm
