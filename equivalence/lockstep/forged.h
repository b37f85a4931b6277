// Trainings that are wrong in one respect: what a comparison has to tell from the right one.
#pragma once

#include <optional>

#include "equivalence/lockstep/trainee.h"

namespace isonorm::equivalence {

enum class Forgery {
  none,
  weight,            // one entry is moved by `size` of its tensor's largest
  row,               // one row of a weight is 1 + `size` times what it should be
  batch,             // at one step it sees another batch
  frozen_gains,      // gains and biases of norms are not trained
  uncorrected_head,  // the head reads the stored table as it is (gpt)
  centred_entry,     // it begins with centred embeddings, though the first branch reads them as they are
  summed,            // its ranks sum what they should average
  left_out,          // what the second of its ranks has learned is left out
};

// A trainee that does something else than its options say.
class Forged : public Trainee {
 public:
  Forged(const training::TrainingOptions& options, const Variant& variant, Forgery forgery, double size = 1e-9);

  // Forgery::batch: at `step`, counted from 0, it is trained on `examples` instead of what it is given.
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
