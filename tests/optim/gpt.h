// The small GPT of the fixture (tests/fixtures/torch_gpt.py): initial weights, batches, and PyTorch's results.
#pragma once

#include <string>

#include "io/safetensors.h"
#include "nn/gpt.h"
#include "tests/support/ops.h"
#include "tests/support/test_device.h"

namespace isonorm::fixture {

using test::on_test_device, test::test_device;

constexpr int kSteps = 100;
// PyTorch's run, started one ulp away, ends within 3e-12 of the original run: 1e-10 only leaves room for another order
// of summation.
constexpr double kTolerance = 1e-10;

inline const TensorMap& tensors() {
  static const TensorMap all = load_safetensors("tests/fixtures/optim_gpt.safetensors");
  return all;
}

// The fixture's model with its initial weights. Their names must be exactly our model's.
inline nn::Gpt make_gpt() {
  nn::Gpt model({.vocab = 13,
                 .context = 6,
                 .transformer = {.width = 8, .depth = 2, .heads = 2, .mlp_width = 16, .affine = true}});
  model.to(DType::f64);
  model.to(test_device());
  TensorMap initial;
  const std::string prefix = "initial/";
  for (const auto& [name, tensor] : tensors())
    if (name.starts_with(prefix)) initial.add(name.substr(prefix.size()), tensor);
  model.load_state_dict(initial);
  return model;
}

// Ids [4, 6] that a step reads (first = 0) or predicts (first = 1).
inline Tensor tokens(int step, int64_t first) {
  return on_test_device(contiguous(narrow(select(tensors().at("tokens"), 0, step), 1, first, 6)));
}

inline double backward_of_step(nn::Gpt& model, int step) {
  const Tensor loss = cross_entropy(model(tokens(step, 0)), tokens(step, 1));
  backward(loss);
  return loss.item();
}

}  // namespace isonorm::fixture
