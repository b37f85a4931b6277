// A listener hears of each leaf once, when its gradient is final, and as early as possible; gradients keep their bits.
#include "tests/autograd/room.h"

namespace {

constexpr int kLayers = 4;

// Layers tanh(h W_i); if `tied`, times the sum of the first W, which all layers share. Leaf kLayers is not used.
struct Stack {
  std::vector<Tensor> leaves;
  Tensor x;
  std::vector<std::string> events;

  Stack() {
    Generator g{4, 0};
    x = randn({3, 5}, {}, g);
    for (int i = 0; i <= kLayers; ++i) leaves.push_back(require_grad(randn({5, 5}, {}, g)));
  }
  Tensor layer(int i, const Tensor& h, bool tied) const {
    const Tensor y = tanh(matmul(h, leaves[static_cast<size_t>(i)]));
    return tied ? y * sum(leaves[0]) : y;
  }
  Tensor loss(bool tied, int checkpointed = -1) {
    Tensor h = x;
    for (int i = 0; i < kLayers; ++i) {
      const auto f = [this, i, tied](const Tensor& in) { return layer(i, in, tied); };
      h = i == checkpointed ? checkpoint(f, h) : f(h);
      on_grad(h, [this, i](const Tensor& g) { return events.push_back("layer " + std::to_string(i)), g; });
    }
    return sum(h);
  }
  // The gradients of the leaves. `listening`: notes when each leaf is complete, and its gradient at that time.
  std::vector<Tensor> gradients(const Tensor& loss, bool listening, bool retained = false) {
    events.clear();
    std::vector<Tensor> heard(leaves.size()), all;
    const GradientListener listener{leaves, [&](size_t i) {
                                      events.push_back("leaf " + std::to_string(i));
                                      if (leaves[i].grad().defined()) heard[i] = clone(leaves[i].grad());
                                    }};
    backward(loss, {}, {.retain_graph = retained, .listener = listening ? &listener : nullptr});
    for (size_t i = 0; i < leaves.size(); ++i) {
      all.push_back(leaves[i].grad());
      if (listening) check(heard[i].defined() == all[i].defined() && (!heard[i].defined() || same(heard[i], all[i])));
      set_grad(leaves[i], {});
    }
    return all;
  }
  static bool same(const Tensor& a, const Tensor& b) { return a.to_vector<float>() == b.to_vector<float>(); }
};

using Events = std::vector<std::string>;

}  // namespace

TEST_CASE("a listener is called for a leaf after its oldest consumer, for an unused leaf at once") {
  Stack s;
  s.gradients(s.loss(false), true);
  CHECK(s.events ==
        Events{"leaf 4", "layer 3", "leaf 3", "layer 2", "leaf 2", "layer 1", "leaf 1", "layer 0", "leaf 0"});
  s.gradients(s.loss(true), true);  // leaf 0 is read by all layers
  CHECK(s.events ==
        Events{"leaf 4", "layer 3", "leaf 3", "layer 2", "leaf 2", "layer 1", "leaf 1", "layer 0", "leaf 0"});
  // A checkpointed part may read any leaf, so leaves that would be complete before it wait for it.
  s.gradients(s.loss(true, 2), true);
  const auto place = [&](const char* e) { return std::ranges::find(s.events, e) - s.events.begin(); };
  for (const char* leaf : {"leaf 2", "leaf 3", "leaf 4"}) {
    CHECK(place(leaf) > place("layer 2"));
    CHECK(place(leaf) < place("layer 1"));
  }
  CHECK(s.events.back() == "leaf 0");
  CHECK(s.events.size() == 9);
}

TEST_CASE("gradients have the same bits with a listener and without") {
  for (const int checkpointed : {-1, 0, 2, 3})
    for (const bool tied : {false, true}) {
      Stack s;
      const std::vector<Tensor> plain = s.gradients(s.loss(tied, checkpointed), false);
      const Tensor loss = s.loss(tied, checkpointed);
      for (const bool retained : {true, true, false}) {
        const std::vector<Tensor> heard = s.gradients(loss, true, retained);
        for (size_t i = 0; i < plain.size(); ++i)
          CHECK((plain[i].defined() ? heard[i].defined() && Stack::same(plain[i], heard[i]) : !heard[i].defined()));
      }
      const std::vector<Tensor> after = s.gradients(s.loss(tied, checkpointed), false);
      for (size_t i = 0; i < kLayers; ++i) CHECK(Stack::same(plain[i], after[i]));
    }
}

TEST_CASE("a graph that waits while another is listened to keeps its order") {
  Stack s;
  const std::vector<Tensor> plain = s.gradients(s.loss(true), false);
  const Tensor first = s.loss(true), second = s.loss(true);
  s.gradients(second, true);
  const std::vector<Tensor> late = s.gradients(first, false);
  for (size_t i = 0; i < kLayers; ++i) CHECK(Stack::same(plain[i], late[i]));
  // The same after a backward with a listener has failed.
  Tensor third = s.loss(true);
  const GradientListener fails{s.leaves, [](size_t i) { check(i != 2, "enough"); }};
  CHECK_THROWS_WITH(backward(third, {}, {.listener = &fails}), "enough");
  for (const Tensor& x : s.leaves) set_grad(x, {});
  const std::vector<Tensor> again = s.gradients(s.loss(true), true);
  for (size_t i = 0; i < kLayers; ++i) CHECK(Stack::same(plain[i], again[i]));
}

TEST_CASE("a listener hears of frozen leaves, of plain tensors, of a leaf that is the loss, and not of results") {
  const Tensor a = require_grad(tensor({2.0})), b = require_grad(tensor({3.0})), plain = tensor({1.0});
  std::vector<size_t> heard;
  const GradientListener all{{a, b, plain}, [&](size_t i) { heard.push_back(i); }};
  const Tensor y = a * b;
  require_grad(b, false);
  backward(y, {}, {.listener = &all});
  std::ranges::sort(heard);
  CHECK(heard == std::vector<size_t>{0, 1, 2});
  CHECK(a.grad().item() == 3);
  CHECK(!b.impl().node->gradient.defined());
  heard.clear();
  backward(a, {}, {.listener = &all});
  CHECK(heard == std::vector<size_t>{1, 2, 0});
  CHECK(a.grad().item() == 4);
  const GradientListener result{{a * 2.0}, [](size_t) {}};
  CHECK_THROWS_WITH(backward(a * a, {}, {.listener = &result}), Contains("leaves[0] of shape [1] is not a leaf"));
  CHECK_THROWS_WITH(grad(a * a, {a}, {.listener = &all}), Contains("a listener is for backward()"));
}

TEST_CASE("a rule that reaches a leaf after the listener's call is refused, unless its node announces it") {
  for (const bool says : {true, false}) {
    const Tensor w = require_grad(tensor({2.0})), x = require_grad(tensor({3.0}));
    Tensor y = clone(detach(x));
    autograd::Node* const n = track("hidden", {&y}, {&x});
    n->reaches_unseen = says;
    n->backward = differentiable([w](Flow& g) {
      const Recording recording;
      g.follow(w * 5.0, g.take());
    });
    const GradientListener listener{{w}, [](size_t) {}};
    const Tensor loss = y * w;
    const auto pass = [&] { backward(loss, {}, {.listener = &listener}); };
    if (!says) {
      CHECK_THROWS_WITH(pass(), Contains("a leaf of shape [1] got a gradient after"));
      continue;
    }
    pass();
    CHECK(w.grad().item() == 3 + 2 * 5);
  }
}
