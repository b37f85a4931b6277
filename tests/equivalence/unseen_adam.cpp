// Mistakes in a hand-written Adam: moments, corrections, decays, groups.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_optimizer.h"

namespace isonorm::unseen {

namespace {

Make adam(double eps = 1e-8) {
  return
      [=](const Parameters& p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 1e-2, .eps = eps}); };
}
Make adamw(double decay) {
  return [=](const Parameters& p) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .weight_decay = decay});
  };
}

struct OwnAdam : OwnOptimizer {
  using OwnOptimizer::OwnOptimizer;
  virtual Tensor direction(const Tensor& m, const Tensor& v) {
    return m / (1 - std::pow(0.9, t_)) / (sqrt(v / (1 - std::pow(0.999, t_))) + 1e-8);
  }
  virtual double decay(const Tensor&) { return 0; }
  virtual double rate() { return lr(); }
  void update(size_t i, Tensor& w, const Tensor& g) override {
    first_[i] = first_[i] * 0.9 + g * 0.1;
    second_[i] = second_[i] * 0.999 + g * g * 0.001;
    w *= 1 - rate() * decay(w);
    w -= direction(first_[i], second_[i]) * rate();
  }
};

struct Uncorrected : OwnAdam {
  using OwnAdam::OwnAdam;
  Tensor direction(const Tensor& m, const Tensor& v) override { return m / (sqrt(v) + 1e-8); }
};
// The step count grows once for each parameter, not once for each step.
struct CountsParameters : OwnAdam {
  using OwnAdam::OwnAdam;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    if (i > 0) ++t_;
    OwnAdam::update(i, w, g);
  }
};
struct EpsInRoot : OwnAdam {
  using OwnAdam::OwnAdam;
  Tensor direction(const Tensor& m, const Tensor& v) override {
    return m / (1 - std::pow(0.9, t_)) / sqrt(v / (1 - std::pow(0.999, t_)) + 1e-5);
  }
};
struct BetasExchanged : OwnAdam {
  using OwnAdam::OwnAdam;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    first_[i] = first_[i] * 0.999 + g * 0.001;
    second_[i] = second_[i] * 0.9 + g * g * 0.1;
    w -= first_[i] / (1 - std::pow(0.999, t_)) / (sqrt(second_[i] / (1 - std::pow(0.9, t_))) + 1e-8) * lr();
  }
};
// The first model decays only matrices, the hand-written optimizer also norms and biases.
struct DecaysAll : OwnAdam {
  using OwnAdam::OwnAdam;
  double decay(const Tensor&) override { return 0.1; }
};
std::unique_ptr<optim::Optimizer> grouped(const Parameters& p) {
  Parameters matrices, others;
  for (const Tensor& w : p) (w.rank() > 1 ? matrices : others).push_back(w);
  return std::make_unique<optim::AdamW>(std::vector<optim::ParameterGroup<optim::AdamWOptions>>{
      {matrices, {.lr = 1e-2, .weight_decay = 0.1}}, {others, {.lr = 1e-2, .weight_decay = 0}}});
}
struct DecaysAtFullRate : OwnAdam {  // w *= 1 - decay
  using OwnAdam::OwnAdam;
  double decay(const Tensor&) override { return 0.1 / lr(); }
};

// AdamW that decays after its step, not before.
struct DecaysAfter : OwnAdam {
  using OwnAdam::OwnAdam;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    OwnAdam::update(i, w, g);
    w *= 1 - lr() * 0.1;
  }
};
// Bias correction only of the first moment.
struct CorrectsFirst : OwnAdam {
  using OwnAdam::OwnAdam;
  Tensor direction(const Tensor& m, const Tensor& v) override { return m / (1 - std::pow(0.9, t_)) / (sqrt(v) + 1e-8); }
};
// The maximum of the second moments, as in AMSGrad.
struct AmsGrad : OwnAdam {
  using OwnAdam::OwnAdam;
  std::vector<Tensor> largest_ = second_;
  void update(size_t i, Tensor& w, const Tensor& g) override {
    first_[i] = first_[i] * 0.9 + g * 0.1;
    second_[i] = second_[i] * 0.999 + g * g * 0.001;
    largest_[i] = maximum(largest_[i], second_[i]);
    w -= direction(first_[i], largest_[i]) * lr();
  }
};
struct DecaysVectors : OwnAdam {  // the groups are exchanged
  using OwnAdam::OwnAdam;
  double decay(const Tensor& w) override { return w.rank() > 1 ? 0 : 0.1; }
};

// Optimizers whose first steps are nearly Adam's.
template <class O, class Options> Make other(const Options& options) {
  return [=](const Parameters& p) { return std::make_unique<O>(p, options); };
}

}  // namespace

std::vector<Mistake> adam_mistakes() {
  return {
      {{"Lion for Adam", "update", "", "at step 1"},
       [] { return compare_optimizers(adam(), other<optim::Lion>(optim::LionOptions{.lr = 1e-2})); }},
      {{"Adagrad for Adam", "update", "", "at step 1"},
       [] { return compare_optimizers(adam(), other<optim::Adagrad>(optim::AdagradOptions{.lr = 1e-2})); }},
      {{"RMSprop for Adam", "update", "", "at step 1"},
       [] { return compare_optimizers(adam(), other<optim::Rmsprop>(optim::RmspropOptions{.lr = 1e-2})); }},
      {{"no bias correction", "update", "", "at step 1"}, [] { return compare_optimizers<Uncorrected>(adam(), 1e-2); }},
      {{"the step counts parameters", "update", "", "=in.bias norm.weight norm.bias out.weight out.bias"},
       [] { return compare_optimizers<CountsParameters>(adam(), 1e-2); }},
      {{"eps in the root", "update", "", "at step 1"}, [] { return compare_optimizers<EpsInRoot>(adam(1e-5), 1e-2); }},
      {{"correction of the first moment alone", "update", "", "at step 1"},
       [] { return compare_optimizers<CorrectsFirst>(adam(), 1e-2); }},
      {{"betas exchanged", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<BetasExchanged>(adam(), 1e-2); }},
      {{"the largest second moment", "update", "", "new optimizers take the same step"},
       [] { return compare_optimizers<AmsGrad>(adam(), 1e-2); }},
      {{"norms and biases decay, too", "update",
        "another weight decay: the second model takes off 0.001 of each weight per step, the first 0, in in.bias and 2 "
        "more",
        ""},
       [] { return compare_optimizers<DecaysAll>(grouped, 1e-2); }},
      {{"the groups of a decay exchanged", "update", "", "at step 1"},
       [] { return compare_optimizers<DecaysVectors>(grouped, 1e-2); }},
      {{"a decay that is not multiplied by the rate", "update",
        "another weight decay: the second model takes off 0.1 of each weight per step, the first 0.001", ""},
       [] { return compare_optimizers<DecaysAtFullRate>(adamw(0.1), 1e-2); }},
      {{"decay after the step", "update", "", "at step 1"},
       [] { return compare_optimizers<DecaysAfter>(adamw(0.1), 1e-2); }},
  };
}

Comparison right_adam() { return compare_optimizers<OwnAdam>(adam(), 1e-2); }

}  // namespace isonorm::unseen
