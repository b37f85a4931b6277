// Internal: negative controls of a user's model. A comparison must be able to see their mistakes.
#pragma once

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/judge/criterion.h"
#include "nn/norm.h"

namespace isonorm::equivalence {

// Gains and biases of the norms in `module`, however deep.
inline std::vector<Tensor> gains(const nn::Module& module) {
  std::vector<Tensor> found;
  for (const auto& [_, m] : module.named_modules())
    if (dynamic_cast<const nn::Norm*>(m))
      for (const Tensor& p : m->parameters()) found.push_back(p);
  return found;
}

// A, trained without changing the gains and biases of its norms.
class Frozen : public OwnTraining {
 public:
  using OwnTraining::OwnTraining;
  void differentiate(const training::Examples& batch) override {
    OwnTraining::differentiate(batch);
    for (const Tensor& p : gains(model())) set_grad(p, {});
  }
};

// The step of a negative control, counted from 0, at which Misled sees another batch.
inline constexpr int kExchanged = kNegativeSteps / 2;

// A, trained on another batch at step kExchanged.
class Misled : public OwnTraining {
 public:
  Misled(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss, uint64_t seed,
         training::Examples other)
      : OwnTraining(model, std::move(parameters), loss, seed), other_(std::move(other)) {}
  void differentiate(const training::Examples& batch) override {
    OwnTraining::differentiate(step_++ == kExchanged ? other_ : batch);
  }

 private:
  training::Examples other_;
  int step_ = 0;
};

// A, trained with a gradient of the wrong sign at step 1. On one batch that repeats there may be little left to learn
// after it.
class Reversed : public OwnTraining {
 public:
  using OwnTraining::OwnTraining;
  void differentiate(const training::Examples& batch) override {
    OwnTraining::differentiate(batch);
    if (step_++ != 1) return;
    NoGrad no_grad;
    for (const Tensor& p : model().parameters())
      if (const Tensor g = p.grad(); g.defined()) set_grad(p, -g);
  }

 private:
  int step_ = 0;
};

}  // namespace isonorm::equivalence
