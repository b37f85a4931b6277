// Lockstep: trains a reference, its controls and the runs to be judged on the same batches from one initialization.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "equivalence/judge/run_result.h"
#include "equivalence/lockstep/training.h"
#include "training/model_options.h"

namespace isonorm::equivalence {

// Called after every step; returns false to stop.
using Continue = std::function<bool()>;

class Lockstep {
 public:
  Lockstep() = default;
  // Add the reference first, then its controls, then the runs. step() fills the record, which must not move.
  void add(std::unique_ptr<Training> training, RunResult& record, bool control = false);

  // Makes a model for every record, by its variant, seed and device, from the parameters of `initial` (a raw model).
  // Reference and controls train without interruption, on one rank.
  Lockstep(const training::TrainingOptions& options, const nn::Module& initial, RunResult& reference,
           std::span<RunResult> controls, std::span<RunResult> runs);

  // One step of every model; appends losses and deviations to the records.
  void step(const training::Examples& batch, double lr);
  // Trains `steps` steps on generated examples (made_examples.h) at the constant rate of `options`. False if `go_on`
  // stopped it.
  bool train_on_made(const training::TrainingOptions& options, int steps, const Continue& go_on = {});

  // Every model with its record: the reference, the controls, the runs.
  struct Member {
    std::unique_ptr<Training> training;
    RunResult* record;
    bool control;
  };
  std::span<Member> members() { return members_; }

  double deviation() const { return worst_; }  // of the runs: the largest so far, in any quantity
  double control_deviation() const { return larger(larger(control_[0], control_[1]), control_[2]); }  // of the controls
  // Returns the name of the tensor that controls have moved furthest, up to `step` (from 1). quantity: index of
  // kQuantities.
  const std::string& moved_furthest(size_t quantity, int step) const {
    return furthest_[static_cast<size_t>(step) - 1][quantity];
  }

 private:
  std::vector<Member> members_;
  DType reference_dtype_ = DType::f64;
  double worst_ = 0;
  double control_[3] = {};  // of loss, gradient, weights
  using Names = std::array<std::string, std::size(kQuantities)>;
  std::vector<Names> furthest_;  // by step: the tensors with the deviations in control_
};

}  // namespace isonorm::equivalence
