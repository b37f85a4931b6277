// Internal: two models that differ, run again with one thing changed: does the difference vanish?
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "equivalence/compare/found.h"
#include "equivalence/compare/own_training.h"

namespace isonorm::equivalence {

// How the two models of a trial run. Parameter i of A is of_a[i] of the point's tensor i, and more_a[i] if that is defined;
// parameter i of B is of_b[i] of the point's tensor i. Gradients are with respect to the point's tensors.
struct Setting {
  std::vector<Tensor> point, more_a;
  std::vector<Route> of_a, of_b;
  bool changes_a = false;  // else A's result is that of the trial's own setting
  bool changes_b = false;
};

class Trial {
 public:
  // The models hold the point at which they differ. seen: what the comparison measured there, the loss first. budget: how
  // many gradients the trial may compute.
  Trial(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss, const training::Examples& batch,
        uint64_t seed, std::span<const Seen> seen, int budget);

  nn::Module &a, &b;
  const Partners& partners;
  const Objective& loss;
  const training::Examples& batch;
  const uint64_t seed;
  const DType dtype;
  const Setting own;  // the setting in which they differ

  // Whether gradients are left for `count` more runs of a model; uses them.
  bool spend(int count);

  // Runs both models. Loss and gradients agree if each is within the bound that the comparison measured. Weights, buffers and
  // modes are as before afterwards. but: a parameter of A whose gradient does not count.
  bool agree(const Setting& setting, const std::string& but = "");
  // As agree(), with both models run anew in the trial's own setting.
  bool agree_again();

  // The comparison's loss, and its gradients of parameters.
  const Seen& loss_seen() const { return loss_; }
  const std::vector<Seen>& gradients_seen() const { return gradients_; }

 private:
  std::unique_ptr<OwnTraining> run_a(const Setting& setting);
  std::unique_ptr<OwnTraining> run_b(const Setting& setting);
  bool within(const OwnTraining& of_b, const OwnTraining& of_a, const std::string& but) const;

  Seen loss_;
  std::vector<Seen> gradients_;
  int budget_;
  std::unique_ptr<OwnTraining> own_a_, own_b_;
};

}  // namespace isonorm::equivalence
