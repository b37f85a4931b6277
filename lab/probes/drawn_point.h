// A random point of the certificate: weights and a batch, rounded to a dtype and held in f64.
#pragma once

#include "lab/probes/architecture.h"
#include "lab/probes/rounding_model.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

class DrawnPoint {
 public:
  DrawnPoint(const Architecture& a, DType dtype, uint64_t seed);

  // Draws every weight with a mean of half its size, and two made examples. Draws again while an input of a ReLU (width
  // 2: a row) is within four times its predicted error of 0: at a kink the gradient jumps, and rounding can cause an
  // error of any size. In bf16 a hundredth of the inputs are there, so it takes a few draws. Returns the number of
  // rejected draws; throws after 1000.
  int next();

  const nn::Module& raw() const { return *raw_; }
  const training::Examples& batch() const { return batch_; }
  const training::TrainingOptions& exact() const { return exact_; }  // in f64
  DType dtype() const { return dtype_; }

  // The rounding model of a form at this point, each time with other errors.
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
