// Negative controls: trainings with one planted mistake. A comparison must find them different, and a bound has to stay
// below their deviations.
#pragma once

#include <optional>
#include <span>

#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/trainee.h"

namespace isonorm::equivalence {

// A trainee with a planted mistake.
class NegativeControlTraining : public Trainee {
 public:
  NegativeControlTraining(const training::TrainingOptions& options, const Variant& variant, NegativeControl mistake,
                          double size = 1e-9);

  // NegativeControl::batch: at `step`, counted from 0, it trains on `examples` instead of the given batch.
  void exchange_batch(int step, training::Examples examples);

  void start_from(const nn::Module& raw) override;
  void differentiate(const training::Examples& batch) override;

 private:
  Tensor forward(const Tensor& inputs) override;

  const NegativeControl mistake_;
  const double size_;
  int exchanged_ = 0;
  std::optional<training::Examples> instead_;
};

// The records of the negative controls of models with these options:
//   weights converted once, then trained plainly  projected_once; compressed_plain, if norms have no gains
//   one batch exchanged; gains not trained        instead, if mapped storage cannot hold the function: with a tied head
//                                                 that sees the means of the table's rows, and with dropout or layer
//                                                 scale on branches. Gains only if the norms have some.
//   centred embeddings                            also, if the first branch reads bare embeddings
//   mistakes of ranks                             also, with several ranks
//   one batch exchanged                           alone, for a program's own model or connections, whose other forms
//                                                 may be other functions
// Centred embeddings and mistakes of ranks differ from the start. The others begin as the reference's function and
// leave it by training alone.
std::vector<RunResult> negative_control_records(const training::TrainingOptions& options);

// Adds the trainings of negative_control_records(options) to `all`, from the parameters of `initial` (a raw model).
// other: the batch that is shown at step kNegativeSteps / 2 if a batch is exchanged.
void add_negative_controls(Lockstep& all, const training::TrainingOptions& options, const nn::Module& initial,
                           std::span<RunResult> records, const training::Examples& other);

}  // namespace isonorm::equivalence
