// The logits of an imported model against those that another program recorded with the same weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "autograd/grad_mode.h"
#include "core/view.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "training/model_file.h"

namespace isonorm {

// max |ours - theirs| / max |theirs| of the logits, in f64. Images are [n, channels, height, width] there.
inline double off(const std::string& recorded, const std::string& file) {
  const TensorMap reference = load_safetensors(recorded);
  Tensor inputs = reference.at("inputs");
  if (inputs.rank() == 4) inputs = detached::contiguous(detached::permute(inputs, {0, 2, 3, 1}));
  const auto model = training::load_model(file);
  model->to(DType::f64);
  const NoGrad no_grad;
  const std::vector<double> ours = (*model)(inputs).to_vector<double>(),
                            theirs = reference.at("logits").to_vector<double>();
  REQUIRE(ours.size() == theirs.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i)
    difference = std::max(difference, std::abs(ours[i] - theirs[i])), size = std::max(size, std::abs(theirs[i]));
  return difference / size;
}

}  // namespace isonorm
