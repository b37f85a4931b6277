// Lockstep: a reference, its controls and the runs to be judged, trained on the same batches from one initialisation.
#pragma once

#include <span>

#include "equivalence/result.h"
#include "equivalence/trainee.h"

namespace isonorm::equivalence {

class Lockstep {
 public:
  // Makes a model for every record, by its variant and seed, from the parameters of `initial` (a raw model). The
  // records are filled by step(); they must stay where they are.
  Lockstep(const ProofOptions& options, const ModelShape& shape, const nn::Module& initial, RunResult& reference,
           std::span<RunResult> controls, std::span<RunResult> runs);

  // One step of every model; appends losses and deviations to the records.
  void step(const Examples& batch, double lr);

  // Every model with its record: the reference, the controls, the runs.
  struct Member {
    std::unique_ptr<Trainee> trainee;
    RunResult* record;
    bool control;
  };
  std::span<Member> members() { return members_; }

  double deviation() const { return worst_; }            // largest so far of the runs, in any quantity
  double control_deviation() const { return control_; }  // of the controls

 private:
  std::vector<Member> members_;
  double worst_ = 0, control_ = 0;
};

}  // namespace isonorm::equivalence
