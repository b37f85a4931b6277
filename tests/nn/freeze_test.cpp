// Freezing: frozen parameters get no gradient, the backward skips their work, and the rest trains as before.
#include <map>

#include "core/system/profile.h"
#include "nn/container.h"
#include "nn/group_norm.h"
#include "nn/vit.h"
#include "optim/adam.h"
#include "tests/support/ops.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

const VitOptions kVit{
    .image = 6, .patch = 3, .classes = 4, .transformer = {.width = 8, .depth = 2, .heads = 2, .affine = true}};

// Number of recorded nodes of a loss, without leaves.
size_t recorded(const Tensor& loss) {
  std::map<autograd::Node*, bool> seen;
  const auto visit = [&](auto& self, autograd::Node* n) -> void {
    if (!n || n->is_leaf() || !seen.emplace(n, true).second) return;
    for (const autograd::Edge& e : n->inputs) self(self, e.node.get());
  };
  visit(visit, loss.impl().node.get());
  return seen.size();
}

struct Work {
  size_t nodes, calls;
};

// The nodes of a step's graph and the kernel calls of its backward.
Work backward_work(Vit& vit, const Tensor& images, const Tensor& labels) {
  for (const Tensor& p : vit.parameters()) set_grad(p, {});
  const Tensor loss = cross_entropy(vit(images), labels);
  const size_t nodes = recorded(loss);
  profile::start();
  backward(loss);
  return {nodes, profile::stop().calls.size()};
}

Module& child(Module& m, const std::string& name) {
  for (const auto& c : m.children())
    if (c->name() == name) return *c;
  throw std::runtime_error("no child " + name);
}

}  // namespace

TEST_CASE("freeze: with all but the head frozen the backward is that of the head alone") {
  manual_seed(1);
  Vit vit(kVit);
  const Tensor images = randn({3, 6, 6, 1}), labels = randint(0, 4, {3});
  const Work all = backward_work(vit, images, labels);
  vit.freeze();
  child(vit, "head").freeze(false);
  const Work head = backward_work(vit, images, labels);
  CHECK(head.nodes == 2);  // linear and cross_entropy
  CHECK(head.calls <= 4);  // for the loss, the weight and the bias
  CHECK(all.nodes > 10 * head.nodes);
  CHECK(all.calls > 5 * head.calls);

  // Block 0 frozen, then the head as well: fewer gradients of weights are computed.
  vit.freeze(false);
  Module& blocks = child(vit, "blocks");
  child(blocks, "0").freeze();
  const Work half = backward_work(vit, images, labels);
  CHECK(half.calls < all.calls);
  child(vit, "head").freeze();
  CHECK(backward_work(vit, images, labels).calls < half.calls);
}

TEST_CASE("freeze: the frozen stay bit by bit, the others move as they would with all thawed") {
  manual_seed(2);
  Vit free(kVit), part = clone(free);
  for (Vit* v : {&free, &part}) v->to(DType::f64);
  child(part, "blocks").freeze();
  const TensorMap before = clone(part.state_dict());
  const training::Examples batch{randn({3, 6, 6, 1}, {DType::f64}), randint(0, 4, {3})};
  for (Vit* v : {&free, &part}) {
    optim::AdamW opt(v->parameters(), {.lr = 1e-2, .weight_decay = 0.1});
    training::Step step(*v, opt, training::cross_entropy_of, {.limits = {.norm = 1e9}});
    step(batch);
  }
  for (const auto& [name, t] : part.state_dict()) {
    INFO(name);
    if (name.starts_with("blocks."))
      CHECK(t.to_vector<double>() == before.at(name).to_vector<double>());
    else  // the first step depends only on the gradient
      CHECK(t.to_vector<double>() == free.state_dict().at(name).to_vector<double>());
  }
}

TEST_CASE("freeze: survives conversion and clone, and buffers do not take part") {
  struct Net : Module {
    BatchNorm& norm = add("norm", BatchNorm(3));
    Tensor forward(const Tensor& x) override { return norm(x); }
  };
  Net net;
  net.freeze();
  net.to(DType::f64);
  CHECK_FALSE(requires_grad(net.norm.weight));
  Net copy = clone(net);
  CHECK_FALSE(requires_grad(copy.norm.weight));
  copy.freeze(false);
  CHECK(requires_grad(copy.norm.weight));
  CHECK_FALSE(requires_grad(copy.norm.running_mean));
  CHECK_FALSE(requires_grad(net(randn({4, 2, 2, 3}, {DType::f64}))));
  CHECK(amax(abs(net.norm.running_mean)).item() > 0);  // it is updated until eval()
}
