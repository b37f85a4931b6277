// Mistakes in momentum, clipping, schedules and accumulation, and mistakes that begin late.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_optimizer.h"

namespace isonorm::unseen {

namespace {

Make sgd(double momentum) {
  return [=](const Parameters& p) {
    return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = 0.1, .momentum = momentum});
  };
}

struct OwnMomentum : OwnOptimizer {
  using OwnOptimizer::OwnOptimizer;
  virtual Tensor gradient(size_t, const Tensor& g) { return g; }
  void update(size_t i, Tensor& w, const Tensor& g) override {
    first_[i] = first_[i] * 0.9 + gradient(i, g);
    w -= first_[i] * lr();
  }
};
// Momentum with a dampening of 0.9 from the second step on, as in torch.optim.SGD.
struct Dampened : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  Tensor gradient(size_t, const Tensor& g) override { return t_ == 1 ? g : g * 0.1; }
};
struct ForgetsAtSeven : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override {
    if (t_ == 8)
      for (Tensor& m : first_) m = zeros_like(m);
  }
};
std::unique_ptr<optim::Optimizer> decayed_sgd(const Parameters& p) {
  return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
}
// Clips each tensor by itself.
struct ClipsEach : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  Tensor gradient(size_t, const Tensor& g) override { return g * std::min(1.0, 0.05 / (norm(g).item() + 1e-6)); }
};
struct ClipsAll : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override { factor_ = optim::clip_factor(optim::grad_norm(parameters_), 0.05); }
  Tensor gradient(size_t, const Tensor& g) override { return g * factor_; }
  double factor_ = 1;
};
struct DoubledAtSeven : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  Tensor gradient(size_t i, const Tensor& g) override { return t_ == 7 && i == 3 ? g * 2 : g; }
};

struct Decoupled : OwnMomentum {  // in the first model the decay passes through momentum
  using OwnMomentum::OwnMomentum;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    w *= 1 - lr() * 0.1;
    OwnMomentum::update(i, w, g);
  }
};
struct Nesterov : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    first_[i] = first_[i] * 0.9 + g;
    w -= (g + first_[i] * 0.9) * lr();
  }
};
struct SkipsSeven : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    if (t_ != 7) OwnMomentum::update(i, w, g);
  }
};
// After five steps the weights go back half way.
struct Lookahead : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  std::vector<Tensor> slow_ = clones(parameters_);
  static std::vector<Tensor> clones(const Parameters& p) {
    std::vector<Tensor> copies;
    for (const Tensor& w : p) copies.push_back(clone(detach(w)));
    return copies;
  }
  void update(size_t i, Tensor& w, const Tensor& g) override {
    OwnMomentum::update(i, w, g);
    if (t_ % 5 == 0) w -= (w - slow_[i]) * 0.5;
  }
};
// The head's rate is a tenth of the others'; the hand-written optimizer ignores this.
std::unique_ptr<optim::Optimizer> slow_head(const Parameters& p) {
  return std::make_unique<optim::Sgd>(std::vector<optim::ParameterGroup<optim::SgdOptions>>{
      {Parameters(p.begin(), p.end() - 2), {.lr = 0.1, .momentum = 0.9}},
      {Parameters(p.end() - 2, p.end()), {.lr = 0.01, .momentum = 0.9}}});
}
// A trust ratio for each tensor, as in LARS.
struct ScalesByNorm : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  Tensor gradient(size_t i, const Tensor& g) override {
    return parameters_[i].rank() > 1 ? g * (0.1 * norm(parameters_[i]).item() / norm(g).item()) : g;
  }
};

// A warm-up of 4 steps; the hand-written one begins with a rate of 0.
struct Warmup : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override { set_lr(0.1 * std::min(1.0, t_ / 4.0)); }
};
struct WarmupFromZero : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override { set_lr(0.1 * std::min(1.0, (t_ - 1) / 4.0)); }
};
// The rate falls to a tenth after 6 steps; in the hand-written optimizer after 7.
struct FallsAfterSix : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override { set_lr(t_ > 6 ? 0.01 : 0.1); }
};
struct FallsAfterSeven : OwnMomentum {
  using OwnMomentum::OwnMomentum;
  void begin() override { set_lr(t_ > 7 ? 0.01 : 0.1); }
};
template <class M> Make own(double rate) {
  return [=](const Parameters& p) { return std::make_unique<M>(p, rate); };
}

// Both accumulate a batch in two halves; the hand-written model adds the means of the halves.
Comparison unscaled_accumulation() {
  struct Own : Classifier {};
  const auto loss = [](nn::Module& model, const Examples& batch) -> Tensor {
    const Tensor l =
        training::cross_entropy_of(model, batch.rows(0, 4)) + training::cross_entropy_of(model, batch.rows(4, 4));
    return dynamic_cast<Own*>(&model) ? l : l / 2;
  };
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); }, [] { return std::make_unique<Own>(); }, {},
                              loss, sgd(0.9), rows, {.steps = 8});
}

// After step 7 the second model's loss uses only the first half of the batch.
Comparison half_a_batch_late() {
  struct Own : Classifier {
    int calls = 0;
  };
  const auto loss = [](nn::Module& model, const Examples& batch) -> Tensor {
    Own* own = dynamic_cast<Own*>(&model);
    const bool half = own && ++own->calls > 7;
    return training::cross_entropy_of(model, half ? batch.rows(0, 4) : batch);
  };
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); }, [] { return std::make_unique<Own>(); }, {},
                              loss, sgd(0.9), rows, {.steps = 12});
}

// The norm of the second model is frozen.
Comparison frozen_norm() {
  struct Own : Classifier {
    Own() { norm.freeze(); }
  };
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); }, [] { return std::make_unique<Own>(); }, {},
                              training::cross_entropy_of, sgd(0.9), rows, {.steps = 8});
}

// The hand-written optimizer does not get the head's parameters.
Comparison head_forgotten() {
  const auto make = [](const Parameters& p, Which which) -> std::unique_ptr<optim::Optimizer> {
    return sgd(0.9)(which == Which::first ? p : Parameters(p.begin(), p.end() - 2));
  };
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); },
                              [] { return std::make_unique<Classifier>(); }, {}, training::cross_entropy_of, make, rows,
                              {.steps = 8});
}

}  // namespace

std::vector<Mistake> momentum_mistakes() {
  return {
      {{"dampened momentum", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<Dampened>(sgd(0.9), 0.1); }},
      {{"Nesterov's momentum", "update", "", "at step 1"}, [] { return compare_optimizers<Nesterov>(sgd(0.9), 0.1); }},
      {{"decay beside momentum", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<Decoupled>(decayed_sgd, 0.1); }},
      {{"momentum forgotten after step 7", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<ForgetsAtSeven>(sgd(0.9), 0.1); }},
      {{"each tensor clipped by itself", "update", "", "at step 1"},
       [] { return compare_optimizers<ClipsEach>(own<ClipsAll>(0.1), 0.1); }},
      {{"clipping in the second alone", "update", "a gradient that is scaled, as by clipping", ""},
       [] { return compare_optimizers<ClipsAll>(sgd(0.9), 0.1); }},
      {{"a trust ratio", "update", "", "=in.weight out.weight"},
       [] { return compare_optimizers<ScalesByNorm>(sgd(0.9), 0.1); }},
      {{"a gradient doubled at step 7", "update", "", "=norm.bias"},
       [] { return compare_optimizers<DoubledAtSeven>(sgd(0.9), 0.1); }},
      {{"an update skipped at step 7", "update", "as before; the step is skipped, or its rate is 0", "at step 7"},
       [] { return compare_optimizers<SkipsSeven>(sgd(0.9), 0.1); }},
      {{"weights that go back every fifth step", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<Lookahead>(sgd(0.9), 0.1); }},
      {{"a warm-up from 0", "update", "or its rate is 0", ""},
       [] { return compare_optimizers<WarmupFromZero>(own<Warmup>(0.1), 0.1); }},
      {{"a rate that falls one step late", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<FallsAfterSeven>(own<FallsAfterSix>(0.1), 0.1); }},
      {{"one rate for all", "update",
        "another learning rate, or a gradient that is scaled, as by clipping: the second model has 0.1, the first "
        "0.01, in out.weight and 1 more",
        ""},
       [] { return compare_optimizers<OwnMomentum>(slow_head, 0.1); }},
      {{"an optimizer without the head", "update", "its optimizer does not have them", "=out.weight out.bias"},
       head_forgotten},
      {{"a norm that is frozen", "backward", "", "the second model has frozen norm.weight, norm.bias"}, frozen_norm},
      {{"accumulation without division", "forward",
        "a factor of the loss: the loss and all 6 gradients of the second model are 2 times", ""},
       unscaled_accumulation},
      {{"half a batch after step 7", "forward", "", "new models with these weights agree on these examples"},
       half_a_batch_late},
  };
}

Comparison right_momentum() { return compare_optimizers<OwnMomentum>(sgd(0.9), 0.1); }

}  // namespace isonorm::unseen
