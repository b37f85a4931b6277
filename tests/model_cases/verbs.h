// Calls of the functions behind the verbs convert, verify, prove, audit and export. Only this file names them.
#pragma once

#include "equivalence/compare/audit.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/text/grid_text.h"
#include "exchange/hub/gguf.h"
#include "exchange/onnx/model.h"
#include "tests/equivalence/model_files.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/small_images.h"
#include "tests/tools/gguf_file.h"
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

// The grid of an arrangement with two optimizers, after a short training.
inline equivalence::TableResult grid(const nn::Arrangement& a) {
  equivalence::TableOptions o;
  o.connection = a, o.depth = 4, o.steps = 8, o.seeds = 1, o.controls = 2;
  o.columns = {equivalence::recipe("momentum"), equivalence::recipe("adamw")};
  return equivalence::table(o);
}

// The logits that an ONNX file of the model computes.
inline Tensor onnx_logits(const training::ModelFile& file, const Tensor& inputs, int64_t opset) {
  const TempFolder folder;
  onnx::save_model(folder / "model.onnx", file.state, training::ModelOptions(file.description), {}, DType::f64, opset);
  return onnx_runtime::run(onnx_runtime::open(folder / "model.onnx"), inputs);
}

// The model in a GGUF file: the row's options with the numbers in the file's keys, and the weights.
struct InGguf {
  training::ModelOptions model;
  TensorMap weights;
};

// Writes a GGUF file of the first architecture that has exactly the row's options, and reads it.
inline InGguf through_gguf(const ModelCase& c, const training::ModelFile& file) {
  const Metadata ours = training::ModelOptions(file.description).description();
  const TempFolder folder;
  for (const hub::Port& port : hub::gguf_ports()) {
    if (port.model != c.model.row().name) continue;
    training::ModelOptions theirs(c.model.row());
    json config;
    try {
      config = exported_config(port, json::object(), ours);
      for (const auto& [option, value, _] : port_options(port, hub::Config(dump(config))))
        theirs.options(option).at(0).set(value);
      theirs = theirs.complete();
    } catch (const Error&) {
      continue;
    }
    const Metadata there = theirs.description();
    const auto differs = [&](const auto& entry) {
      return !training::is_training_only(entry.first) && there.at(entry.first) != entry.second;
    };
    if (std::ranges::any_of(ours, differs)) continue;
    write_gguf(folder / "model.gguf", port, config, ours, exported(port, file.state, ours), {}, nullptr);
    const gguf::Gguf g = gguf::gguf_of(folder / "model.gguf");
    const auto key = [&](const char* name) -> double {
      const auto at = g.keys.find(text(port.type, '.', name));
      return at == g.keys.end() ? 0 : at->second.get<double>();
    };
    const auto whole = [&](const char* name) { return static_cast<int64_t>(key(name)); };
    InGguf found{c.model, {}};
    found.model.fit({{"vocab", whole("vocab_size")}, {"context", whole("context_length")}});
    nn::TransformerOptions& t = found.model.transformer();
    t.width = whole("embedding_length"), t.depth = whole("block_count"), t.mlp_width = whole("feed_forward_length");
    t.heads = whole("attention.head_count"), t.kv_heads = whole("attention.head_count_kv");
    t.head_width = whole("attention.key_length");
    t.eps = key("attention.layer_norm_epsilon") + key("attention.layer_norm_rms_epsilon");
    if (rotates(t.positions)) t.rotary_base = key("rope.freq_base");
    const bool turns = std::ranges::count(port.parts, hub::Port::Change::turned, &hub::Port::Part::change) > 0;
    for (const auto& [name, tensor] : file.state)
      found.weights.add(name, gguf::ours(g, name, t.head_width, turns).to(DType::f64));
    return found;
  }
  check(false, "no architecture of llama.cpp has this model");
  return {c.model, {}};
}

}  // namespace isonorm::test
