#include "autograd/node.h"

#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/frontier.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/reduce.h"
#include "core/view.h"

namespace isonorm {

namespace {

using autograd::Edge, autograd::Node, autograd::NodeOutput;

thread_local bool recording = true;
thread_local const AnomalyMode* checking = nullptr;

thread_local uint64_t created = 0;  // the greatest seq of this thread's nodes and of the nodes they build on

// Throws at the first NaN of x, which `what` produced, or infinity if AnomalyOptions ask for these.
void check_numbers(const Tensor& x, const std::string& what) {
  if (!is_floating(x.dtype())) return;
  const std::vector<double> values = x.to_vector<double>();
  const auto bad = std::find_if(values.begin(), values.end(), [](double v) {
    return std::isnan(v) || (checking->options.infinities && std::isinf(v));
  });
  if (bad == values.end()) return;
  check(false, what, " produced ", std::isnan(*bad) ? NAN : *bad, " at element ", bad - values.begin(), " of shape ",
        x.shape());
}

}  // namespace

bool grad_enabled() { return recording; }
bool anomaly_enabled() { return checking != nullptr; }
NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }
Recording::Recording() : before_(recording) { recording = true; }
Recording::~Recording() { recording = before_; }
AnomalyMode::AnomalyMode(AnomalyOptions o) : options(o), before_(std::exchange(checking, this)) {}
AnomalyMode::~AnomalyMode() { checking = before_; }

Node::Node(const char* op, size_t input_count, size_t output_count)
    : name(op), seq(input_count > 0 ? ++created : 0), inputs(input_count), outputs(output_count) {}

Node::~Node() {
  // Destroying an edge may destroy its node, and so on down the graph. The nodes met on the way are kept in a pile
  // instead of on the stack. The pile is a linked list that needs no memory: a node's first edge points to the node
  // below it in the pile, and the edge's former target is put on top.
  thread_local std::shared_ptr<Node>* pile = nullptr;
  const auto take_inputs = [&] {
    for (Edge& e : inputs) {
      std::shared_ptr<Node> node = std::move(e.node);
      while (node.use_count() == 1 && !node->is_leaf()) {
        Edge& first = node->inputs[0];
        std::shared_ptr<Node> above = std::move(first.node);
        first.node = std::exchange(*pile, std::move(node));
        node = std::move(above);
      }
    }
  };
  if (pile) {
    take_inputs();
    return;
  }
  std::shared_ptr<Node> mine;
  pile = &mine;
  take_inputs();
  while (mine) {
    const std::shared_ptr<Node> last = std::move(mine);
    mine = std::move(last->inputs[0].node);
  }
  pile = nullptr;
}

bool takes_gradient(const Tensor& x) { return recording && x.defined() && requires_grad(x); }

namespace {

template <class Outputs, class Inputs, class Get>
Node* record(const char* name, const Outputs& outputs, const Inputs& inputs, Get get) {
  if (checking)
    for (const auto& o : outputs)
      if (get(o).defined()) check_numbers(get(o), text(name, ": forward"));
  if (!recording) return nullptr;
  const auto node_of = [&](const auto& x) -> const Node* {
    const Node* n = get(x).defined() ? get(x).impl().node.get() : nullptr;
    return n && !n->frozen ? n : nullptr;
  };
  bool tracked = false;
  for (const auto& i : inputs) tracked |= node_of(i) != nullptr;
  if (!tracked) return nullptr;
  check(outputs.size() > 0, name, ": track() got no output");
  for (const auto& o : outputs) check(get(o).defined(), name, ": an output of track() is undefined");
  auto owner = pool::make_shared<Node>(name, inputs.size(), outputs.size());
  Node* node = owner.get();
  Edge* edge = node->inputs.begin();
  for (const auto& i : inputs) {
    if (const Node* in = node_of(i)) {
      edge->node = get(i).impl().node;
      edge->output = get(i).impl().output;
      node->is_view |= inputs.size() == 1 && get(*outputs.begin()).impl().storage == get(i).impl().storage;
      node->seq = created = std::max(created, in->seq + 1);  // the input may come from another thread
    } else if (get(i).defined()) {
      edge->constant = get(i).impl().storage.get();
    }
    ++edge;
  }
  int output = 0;
  for (const auto& o : outputs) {
    TensorImpl& t = get(o).impl();
    NodeOutput& made = node->outputs[output];
    made.shape = t.shape;
    made.dtype = t.dtype;
    made.device = t.storage->device();
    t.output = output++;
    t.node = output == static_cast<int>(outputs.size()) ? std::move(owner) : owner;
  }
  if (checking || profile::recording()) node->path = Scope::path();
  if (const autograd::OpWatch* watch = autograd::OpWatch::current()) [[unlikely]] {
    std::vector<const Tensor*> results;
    for (const auto& o : outputs) results.push_back(&get(o));
    watch->show(*node, results);
  }
  return node;
}

}  // namespace

Node* track(const char* name, std::initializer_list<const Tensor*> outputs,
            std::initializer_list<const Tensor*> inputs) {
  return record(name, outputs, inputs, [](const Tensor* t) -> const Tensor& { return *t; });
}
Node* track(const char* name, std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  return record(name, outputs, inputs, [](const Tensor& t) -> const Tensor& { return t; });
}

bool is_sole(const Tensor& x) {
  return x.handle().use_count() == 1 && x.impl().storage.use_count() == 1 && x.is_contiguous();
}

namespace {
// Out of line, like fitted() below: most gradients are the first of their output and need no conversion.
[[gnu::noinline]] void add_to(Tensor& sum, const Tensor& g) {
  Tensor out = is_sole(sum) ? sum : empty_like(sum);
  kernels::binary.on(sum.device(), ops::index_in<ops::Add>(ops::Binary{}), out, sum, g);
  sum = std::move(out);
}
}  // namespace

void accumulate(Tensor& sum, Tensor g) {
  if (sum.defined() && (takes_gradient(sum) || takes_gradient(g)))
    sum = add(sum, g);
  else if (sum.defined())
    add_to(sum, g);
  else
    sum = std::move(g);
}

Tensor Flow::zeros(const NodeOutput& like) {
  Tensor z = empty(like.shape, {like.dtype, like.device});
  kernels::fill(z, 0);
  return z;
}

Tensor Flow::reuse(int i) {
  const Tensor& g = out(i);
  return is_sole(g) ? g : empty_like(g);
}

namespace {
// detached::sum_to() by recorded ops.
Tensor sum_to(const Tensor& g, const Dims& shape) {
  const int extra = g.rank() - shape.rank;
  std::vector<int> stretched;
  for (int d = 0; d < g.rank(); ++d)
    if (d < extra || (shape[d - extra] == 1 && g.shape()[d] != 1)) stretched.push_back(d);
  return reshape(sum(g, stretched), shape);
}

// `g` converted for input number `input`: summed over dimensions that were broadcast, in the input's dtype. Throws if
// it is on another device.
[[gnu::noinline]] Tensor fitted(Tensor g, const NodeOutput& to, int input) {
  check(g.device() == to.device, "backward gave input ", input, " a gradient on ", g.device(), ", the input lies on ",
        to.device);
  if (g.shape() != to.shape) {
    check(broadcast_shapes(to.shape, g.shape(), "backward") == g.shape(), "backward gave input ", input,
          " a gradient of shape ", g.shape(), ", the input has ", to.shape);
    g = takes_gradient(g) ? sum_to(g, to.shape) : detached::sum_to(g, to.shape, "backward");
  }
  return isonorm::to(g, to.dtype);
}
}  // namespace

DType Flow::dtype(int i) const {
  const Edge& e = input(i);
  check(e.node != nullptr, "its rule asks for the dtype of input ", i, ", which takes no gradient");
  return e.node->outputs[e.output].dtype;
}

void Flow::give(int i, Tensor g) {
  const Edge& e = input(i);
  if (!e.node) return;
  const NodeOutput& to = e.node->outputs[e.output];
  check(g.defined(), "backward gave input ", i, " an undefined gradient");
  if (g.shape() != to.shape || g.dtype() != to.dtype || g.device() != to.device) g = fitted(std::move(g), to, i);
  if (checking) check_numbers(g, "backward");
  frontier_.add(*e.node, e.output, std::move(g));
}

Tensor Flow::attached(int i, const Tensor& data) const {
  const Edge& e = input(i);
  if (!data.defined()) return {};
  Tensor x = detach(data);
  x.impl().node = e.node;
  if (e.node) x.impl().output = e.output;
  return x;
}

Tensor Flow::attached(int i) const {
  const Edge& e = input(i);
  if (!e.node) return {};
  const NodeOutput& like = e.node->outputs[e.output];
  return attached(i, detached::expand(zeros({{}, like.dtype, like.device, {}}), like.shape));
}

void Flow::follow(const Tensor& y, Tensor gradient) {
  const TensorImpl& t = y.impl();
  if (!requires_grad(y)) return;
  frontier_.keep(t.node);
  frontier_.add(*t.node, t.output, std::move(gradient));
}

bool Flow::needs_composition() const {
  if (!recording) return false;
  bool low = false;
  for (const NodeOutput& o : node_.outputs) low |= o.dtype == DType::bf16;
  for (size_t i = 0; i < node_.inputs.size(); ++i)
    low |= wants(static_cast<int>(i)) && dtype(static_cast<int>(i)) == DType::bf16;
  check(!low, "it has no second derivative in bf16 (create_graph)");
  return true;
}

void Flow::follow(std::initializer_list<Tensor> composition) {
  int i = 0;
  for (const Tensor& y : composition) {
    if (has_out(i)) follow(y, take(i));
    ++i;
  }
}

}  // namespace isonorm

namespace isonorm::autograd {

namespace {
thread_local const OpWatch* innermost_watch = nullptr;
}

OpWatch::OpWatch(See see) : see_(std::move(see)), outer_(innermost_watch) { innermost_watch = this; }
OpWatch::~OpWatch() { innermost_watch = outer_; }
const OpWatch* OpWatch::current() { return innermost_watch; }

}  // namespace isonorm::autograd

namespace isonorm {

namespace {
thread_local bool reference_wanted = false;
}

bool use_reference() { return reference_wanted; }
UseReference::UseReference() : before_(reference_wanted) { reference_wanted = true; }
UseReference::~UseReference() { reference_wanted = before_; }

}  // namespace isonorm
