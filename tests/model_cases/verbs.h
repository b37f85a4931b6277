// Calls of the functions behind the verbs convert, verify, prove, audit and export. Only this file names them.
#pragma once

#include "equivalence/compare/audit.h"
#include "equivalence/lockstep/prove.h"
#include "exchange/onnx/model.h"
#include "tests/equivalence/model_files.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/small_images.h"
#include "tests/tools/onnx_runtime.h"

namespace isonorm::test {

// The row's model as a file, in f64.
inline training::ModelFile file_of(const ModelCase& c) {
  const std::unique_ptr<nn::Module> model = drawn(c, {.form = c.model.stream().form});
  return {nn::clone(model->state_dict()), training::describe(*model)};
}

inline bool equivalent(const training::ModelFile& a, const training::ModelFile& b) {
  return equivalence::verify_models(a, b).equivalent();
}

// A short training of the row's model on random tokens or small images.
inline training::TrainingOptions small_training(ModelCase c) {
  static const TempFolder folder;
  const bool images = c.model.row().input == training::Input::images;
  if (images) {
    if (!std::filesystem::exists(folder / "images")) write_images(folder);
    c.model.fit({.image = 28, .channels = 1, .classes = 10});
    c.model.set({"patch", 14});
  }
  return {.model = c.model,
          .data = images ? folder / "images" : "",
          .letters = 5,
          .lr = 3e-3,
          .warmup = 2,
          .steps = 12,
          .batch = 4};
}

inline equivalence::ProofResult proof(const ModelCase& c) {
  return equivalence::prove({.training = small_training(c), .controls = 2});
}

// The logits that an ONNX file of the model computes.
inline Tensor onnx_logits(const training::ModelFile& file, const Tensor& inputs, int64_t opset) {
  const TempFolder folder;
  onnx::save_model(folder / "model.onnx", file.state, training::ModelOptions(file.description), {}, DType::f64, opset);
  return onnx_runtime::run(onnx_runtime::open(folder / "model.onnx"), inputs);
}

}  // namespace isonorm::test
