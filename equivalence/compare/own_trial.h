// Internal: a trial of two models of a comparison.
#pragma once

#include <memory>
#include <span>

#include "equivalence/causes/trial.h"
#include "equivalence/compare/points.h"
#include "equivalence/compare/own_training.h"

namespace isonorm::equivalence {

class OwnTrial : public Trial {
 public:
  // The models hold the point at which they differ. compared: the comparison's measurements there, the loss first.
  // budget: how many gradients the trial may compute.
  OwnTrial(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss,
           const training::Examples& batch, uint64_t seed, std::span<const ComparedTensor> compared, int budget);

  bool within(size_t k, const Pair& pair) const override { return holds(gradients_[k], pair); }
  bool within_loss(const Pair& pair) const override { return holds(loss_, pair); }
  bool spend(int count) override;
  bool agree(const Setting& setting, const std::string& but) override;
  bool agree_again() override;
  void keep(const std::function<void()>& f) override;

 private:
  std::unique_ptr<OwnTraining> run(const Setting& setting, bool of_b);
  bool holds(const ComparedTensor& bound, const Pair& pair) const;
  bool within_all(const OwnTraining& b, const OwnTraining& a, const std::string& but) const;

  const Partners& partners_;
  ComparedTensor loss_;
  std::vector<ComparedTensor> gradients_;
  int budget_;
  std::unique_ptr<OwnTraining> own_a_, own_b_;
};

}  // namespace isonorm::equivalence
