// A random point of the certificate: weights and a batch, numbers of a dtype held in f64.
#pragma once

#include "equivalence/probes/architecture.h"
#include "equivalence/probes/rounding_model.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

class DrawnPoint {
 public:
  DrawnPoint(const Architecture& a, DType dtype, uint64_t seed);

  // Draws every weight with a mean of half its size, and two made examples, until no input of a ReLU (no row of width
  // 2) lies within four times its predicted error of 0: at a kink the gradient jumps, and an error of any size is
  // rounding. In bf16 a hundredth of the inputs lie there, so it takes a few draws. Returns how many were in vain;
  // throws after 1000.
  int next();

  const nn::Module& raw() const { return *raw_; }
  const training::Examples& batch() const { return batch_; }
  const training::TrainingOptions& exact() const { return exact_; }  // in f64
  DType dtype() const { return dtype_; }

  // The model of a form at this point that rounds, each time with other errors.
  std::unique_ptr<RoundingModel> rounded_model(streams::Form form);

 private:
  void draw();
  bool at_a_kink();

  training::TrainingOptions exact_;
  DType dtype_;
  Generator weights_, errors_;
  uint64_t drawn_ = 0;
  std::unique_ptr<nn::Module> raw_;
  training::Examples batch_;
};

}  // namespace isonorm::equivalence
