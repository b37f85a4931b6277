// The table of models: a row for every arrangement of every model and for every option. Each property of a model is a
// test of this folder that runs over all rows. docs/adding_an_option.md adds an option.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/residual/all.h"
#include "tests/nn/models.h"
#include "training/model_options.h"

namespace isonorm::test {

// Properties of a row's model. A row that lacks one names the error line that refuses it.
enum class Promise {
  forms,            // All forms of the residual stream compute one function and train as one model.
  convert,          // Files are converted to every form and back.
  prove,            // prove() finds all forms equivalent, and every negative control different.
  audit,            // audit() finds the directions that the loss does not see.
  tensor_parallel,  // Ranks that share heads and hidden units compute the model of one rank.
  onnx,             // An ONNX file computes the logits.
  gguf              // The keys and tensors of a GGUF file give the logits.
};

struct ModelCase {
  std::string name;  // "gpt, post_ln"
  training::ModelOptions model;
  std::map<Promise, const char*> refused = {};  // a part of the line that refuses it
};

// All rows. Models are small: 4 blocks of width 6 or 8.
const std::vector<ModelCase>& model_cases();

// Calls f(row) for every row. A row that says that `promise` is refused must throw its line.
template <class F> void each_model(Promise promise, F&& f) {
  for (const ModelCase& c : model_cases()) {
    INFO(c.name);
    if (const auto refused = c.refused.find(promise); refused != c.refused.end())
      CHECK_THROWS_WITH(f(c), Catch::Matchers::Contains(refused->second));
    else
      CHECK_NOTHROW(f(c));
  }
}

// The row's model in a form of its stream, in f64, with parameters drawn from a normal distribution.
inline std::unique_ptr<nn::Module> drawn(const ModelCase& c, const streams::StreamOptions& stream, uint64_t seed = 7) {
  std::unique_ptr<nn::Module> model = c.model.make(stream);
  nn::draw(*model, seed);
  return model;
}

// Inputs of the row's model, f64 or i64, and a class for each row of its logits.
struct Batch {
  Tensor inputs, targets;
};
Batch batch_of(const ModelCase& c, uint64_t seed = 5);

// The forms in which the row's model is one function: of a LayerNorm model all that centre, of another its own.
std::vector<streams::Form> forms_of(const ModelCase& c);

// Consecutive sums of at most 24 terms through 9 blocks; norms of a few zero-mean numbers enlarge rounding by at most
// 100.
inline const double kRounding = 60 * std::sqrt(24) * 100 * 0x1p-52;

// The logits of the row's model by the formulas of its papers, in single ops. weights: raw parameters by name.
Tensor naive_logits(const training::ModelOptions& model, const TensorMap& weights, const Tensor& inputs);

}  // namespace isonorm::test
