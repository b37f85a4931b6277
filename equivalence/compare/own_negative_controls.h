// Internal: negative controls of a user's model. A comparison must be able to see their mistakes.
#pragma once

#include "equivalence/compare/own_training.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {

// Gains and biases of the norms in `module`, however deep.
std::vector<Tensor> gains(const nn::Module& module);

// A, trained without changing the gains and biases of its norms.
class Frozen : public OwnTraining {
 public:
  using OwnTraining::OwnTraining;
  void differentiate(const training::Examples& batch) override;
};

// The step of a negative control, counted from 0, at which Misled sees another batch.
inline constexpr int kExchanged = kNegativeSteps / 2;

// A, trained on another batch at step kExchanged.
class Misled : public OwnTraining {
 public:
  Misled(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss, uint64_t seed,
         training::Examples other)
      : OwnTraining(model, std::move(parameters), loss, seed), other_(std::move(other)) {}
  void differentiate(const training::Examples& batch) override;

 private:
  training::Examples other_;
  int step_ = 0;
};

// A, trained with a gradient of the wrong sign at step 1. On one batch that repeats there may be little left to learn
// after it.
class Reversed : public OwnTraining {
 public:
  using OwnTraining::OwnTraining;
  void differentiate(const training::Examples& batch) override;

 private:
  int step_ = 0;
};

}  // namespace isonorm::equivalence
