// Internal: two models that differ, run again with one thing changed: does the difference vanish?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "equivalence/judge/pairs.h"
#include "streams/parametrize.h"
#include "training/steps/examples.h"
#include "training/steps/objective.h"

namespace isonorm::equivalence {

// How the two models of a trial run. A gets the point's tensors as its parameters, and B gets the mapped tensors.
// Gradients are with respect to the point's tensors.
struct Setting {
  std::vector<Tensor> point;
  std::vector<Tensor> more_a;  // added to A's parameters; undefined: nothing
  std::vector<int> no_mean_a;  // the axis along which A's parameters lose their mean; -1: none
  std::vector<int> no_mean_b;  // the same for B's, after the map
  bool changes_a = false;      // false: A's result in the trial's own setting is used
  bool changes_b = false;
};

// A gradient of a parameter of A, or the loss, as the comparison measured it.
struct TrialPair {
  Pair pair;
  bool differs = false;
  bool noise = false;  // rounding noise alone, whose scale is not its own
};

class Trial {
 public:
  Trial(nn::Module& first, nn::Module& second, const training::Objective& objective, const training::Examples& examples,
        uint64_t first_seed)
      : a(first), b(second), loss(objective), batch(examples), seed(first_seed) {}
  virtual ~Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  nn::Module &a, &b;
  const training::Objective& loss;
  const training::Examples& batch;
  const uint64_t seed;
  DType dtype = DType::f64;
  std::vector<streams::NamedParameter> of_a, of_b;  // parameters and their partners
  std::vector<bool> mapped;                         // whether a map acts between the two
  Setting own;                                      // the setting that shows the difference
  TrialPair loss_pair;
  std::vector<TrialPair> gradients;

  // True if a pair is within the bound of gradient k, or of the loss.
  virtual bool within(size_t k, const Pair& pair) const = 0;
  virtual bool within_loss(const Pair& pair) const = 0;
  // True if the budget allows gradients of `count` more runs of a model; uses them.
  virtual bool spend(int count) = 0;
  // Runs both models. Loss and gradients agree if each is within its bound. but: a parameter of A whose gradient does
  // not count. Weights, buffers and modes are as before afterwards.
  virtual bool agree(const Setting& setting, const std::string& but = "") = 0;
  // Like agree(), but runs both models again in the trial's own setting.
  virtual bool agree_again() = 0;
  // Runs f. Weights, buffers, gradients and modes of both models are as before afterwards.
  virtual void keep(const std::function<void()>& f) = 0;
};

}  // namespace isonorm::equivalence
