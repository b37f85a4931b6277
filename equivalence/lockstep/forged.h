// Trainings that are wrong in one respect. A comparison must tell them from the right one.
#pragma once

#include <optional>

#include "equivalence/lockstep/trainee.h"

namespace isonorm::equivalence {

// A trainee with a planted mistake.
class Forged : public Trainee {
 public:
  Forged(const training::TrainingOptions& options, const Variant& variant, Forgery forgery, double size = 1e-9);

  // Forgery::batch: at `step`, counted from 0, it trains on `examples` instead of the given batch.
  void exchange_batch(int step, training::Examples examples);

  void start_from(const nn::Module& raw) override;
  void differentiate(const training::Examples& batch) override;

 private:
  Tensor forward(const Tensor& inputs) override;

  const Forgery forgery_;
  const double size_;
  int exchanged_ = 0;
  std::optional<training::Examples> instead_;
};

}  // namespace isonorm::equivalence
