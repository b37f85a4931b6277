#include "autograd/engine.h"

#include <algorithm>
#include <optional>
#include <queue>

#include "autograd/grad_mode.h"
#include "core/kernels/copy.h"

namespace isonorm {
namespace {

Node& leaf_of(const Tensor& x, const char* op) {
  Node* n = x.impl().node.get();
  check(n && n->is_leaf() && !n->backward, op, ": the tensor of shape ", x.shape(),
        " is not a leaf that requires a gradient");
  return *n;
}

// Nodes with a gradient, the youngest first. All consumers of a node are younger, so when it is popped its gradient is
// complete.
class Frontier {
 public:
  void push(const std::shared_ptr<Node>& n) {
    heap_.push_back(n);
    std::push_heap(heap_.begin(), heap_.end(), older);
  }
  std::shared_ptr<Node> pop() {
    std::pop_heap(heap_.begin(), heap_.end(), older);
    std::shared_ptr<Node> n = std::move(heap_.back());
    heap_.pop_back();
    return n;
  }
  bool empty() const { return heap_.empty(); }

 private:
  static bool older(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->seq < b->seq; }
  std::vector<std::shared_ptr<Node>> heap_;
};

bool has_gradient(const Node& n) {
  return std::any_of(n.outputs.begin(), n.outputs.end(), [](const Slot& s) { return s.grad.defined(); });
}

void clear_slots(Node& n) {
  for (Slot& s : n.outputs) s.grad = {};
}

// A gradient that nothing else refers to: an optimizer will change it in place.
Tensor owned(Tensor g) {
  if (g.handle().use_count() == 1 && g.impl().storage.use_count() == 1 && g.is_contiguous()) return g;
  Tensor copy = empty_like(g);
  kernels::copy(copy, g);
  return copy;
}

// Runs the graph from the given outputs. With `wanted`, collects the gradients of those tensors instead of the leaves'.
void run(std::span<const Tensor> outputs, std::span<const Tensor> cotangents, std::span<const Tensor> wanted,
         std::vector<Tensor>* collected) {
  check(cotangents.empty() || cotangents.size() == outputs.size(), "backward: ", cotangents.size(), " cotangents for ",
        outputs.size(), " outputs");
  NoGrad no_grad;
  Frontier frontier;
  std::shared_ptr<Node> at;
  // An error on the way must not leave gradients behind in nodes that live on.
  struct Cleaner {
    Frontier& f;
    std::shared_ptr<Node>& at;
    ~Cleaner() {
      if (at) clear_slots(*at);
      while (!f.empty()) clear_slots(*f.pop());
    }
  } cleaner{frontier, at};

  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    const std::shared_ptr<Node>& n = y.impl().node;
    check(
        n != nullptr, "backward: the tensor of shape ", y.shape(),
        " does not depend on a leaf that requires a gradient (gradients themselves carry no graph: first order only)");
    Tensor g = i < cotangents.size() ? cotangents[i] : Tensor();
    if (!g.defined()) {
      check(y.numel() == 1, "backward: the tensor has shape ", y.shape(),
            "; without a cotangent it must have one element");
      g = empty(y.shape(), y.options());
      kernels::fill(g, 1);
    }
    check(g.shape() == y.shape() && g.dtype() == y.dtype(), "backward: the cotangent is ", g.dtype(), ' ', g.shape(),
          ", the tensor ", y.dtype(), ' ', y.shape());
    if (!has_gradient(*n)) frontier.push(n);
    accumulate(n->outputs[y.impl().output].grad, g);
  }

  while (!frontier.empty()) {
    at = frontier.pop();
    Node& n = *at;
    for (const auto& [output, hook] : n.hooks) {
      Tensor& g = n.outputs[output].grad;
      if (!g.defined()) continue;
      Tensor changed = hook(g);
      check(changed.shape() == g.shape() && changed.dtype() == g.dtype(), "on_gradient: the hook returned ",
            changed.dtype(), ' ', changed.shape(), ", expected ", g.dtype(), ' ', g.shape());
      g = changed;
    }
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].impl().node == at) (*collected)[i] = n.outputs[wanted[i].impl().output].grad;
    if (n.is_leaf()) {
      if (!collected) accumulate(n.gradient, owned(std::move(n.outputs[0].grad)));
    } else {
      check(static_cast<bool>(n.backward), "backward: the graph of '", n.name,
            "' was already used by a backward and released; run the forward again");
      std::vector<bool> fresh(n.inputs.size());
      for (size_t i = 0; i < n.inputs.size(); ++i) fresh[i] = n.inputs[i].node && !has_gradient(*n.inputs[i].node);
      Flow flow(n);
      std::optional<profile::Backward> profiled;
      if (profile::recording()) profiled.emplace(n.path);
      n.backward(flow);
      n.backward = nullptr;
      for (size_t i = 0; i < n.inputs.size(); ++i) {
        const std::shared_ptr<Node>& in = n.inputs[i].node;
        if (!fresh[i] || !has_gradient(*in)) continue;
        frontier.push(in);
        for (size_t j = i + 1; j < n.inputs.size(); ++j) fresh[j] = fresh[j] && n.inputs[j].node != in;
      }
    }
    clear_slots(n);
    at = nullptr;
  }
}

}  // namespace

const Tensor& require_grad(const Tensor& x) {
  TensorImpl& t = x.impl();
  check(is_floating(t.dtype), "require_grad: dtype is ", t.dtype, ", expected f32, f64 or bf16");
  if (t.node && t.node->is_leaf()) return x;
  check(!t.node, "require_grad: the tensor of shape ", t.shape, " is the result of '", t.node ? t.node->name : "",
        "'; detach it first");
  t.node = std::make_shared<Node>("leaf", 0, 1);
  t.node->outputs.push_back({t.shape, t.dtype, t.storage->device(), {}});
  t.output = 0;
  return x;
}

bool requires_grad(const Tensor& x) { return x.impl().node != nullptr; }

Tensor gradient(const Tensor& x) { return leaf_of(x, "gradient").gradient; }

void set_gradient(const Tensor& x, const Tensor& g) {
  Node& n = leaf_of(x, "set_gradient");
  if (g.defined())
    check(g.shape() == x.shape() && g.dtype() == x.dtype(), "set_gradient: the gradient is ", g.dtype(), ' ', g.shape(),
          ", the tensor ", x.dtype(), ' ', x.shape());
  n.gradient = g.defined() ? detach(g) : g;
}

void backward(const Tensor& loss, const Tensor& cotangent) {
  run({&loss, 1}, cotangent.defined() ? std::span<const Tensor>(&cotangent, 1) : std::span<const Tensor>(), {},
      nullptr);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> cotangents) {
  std::vector<Tensor> result(inputs.size());
  for (const Tensor& x : inputs)
    check(requires_grad(x), "grad: an input of shape ", x.shape(), " does not require a gradient");
  run(outputs, cotangents, inputs, &result);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!result[i].defined()) kernels::fill(result[i] = empty_like(inputs[i]), 0);
  return result;
}

std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> inputs, const Tensor& cotangent) {
  return grad({&output, 1}, {inputs.begin(), inputs.size()},
              cotangent.defined() ? std::span<const Tensor>(&cotangent, 1) : std::span<const Tensor>());
}

void on_gradient(const Tensor& x, GradientHook hook) {
  check(requires_grad(x), "on_gradient: the tensor of shape ", x.shape(), " does not require a gradient");
  x.impl().node->hooks.emplace_back(x.impl().output, std::move(hook));
}

}  // namespace isonorm
