#include "exchange/models/described_model.h"

#include <algorithm>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "nn/skip_init.h"

namespace isonorm::exchange {

using training::ModelOptions;

ModelOptions options_of(const hub::Port& port, const hub::Config& config) {
  const auto row = std::ranges::find(training::kModels, port.model, &training::ModelRow::name);
  ModelOptions options(**row);
  for (const auto& [option, value, key] : hub::port_options(port, config)) {
    const training::Option named = options.options(option).at(0);
    check(named.set(value), "config.json: \"", key, "\" is ", Shown{value}, ", expected ", named.expected);
  }
  return options.complete();
}

TensorMap outline_of(const ModelOptions& options) {
  const nn::SkipInit skip;  // only names and shapes are needed
  ModelOptions one = options;
  const bool stacked = &options.row() != &training::kTranslator;  // it has two stacks
  if (stacked) one.transformer().depth = 1;
  const std::string first = "blocks.0.";
  TensorMap all;
  for (const auto& [name, tensor] : one.make()->state_dict()) {
    const bool in_block = stacked && name.starts_with(first);
    for (int64_t block = 0; block < (in_block ? options.transformer().depth : 1); ++block)
      all.add(in_block ? text("blocks.", block, '.', name.substr(first.size())) : name,
              outline(tensor.shape(), DType::f32));
  }
  return all;
}

void check_tensors(const ModelOptions& options, const TensorMap& outline) {
  options.check_size(outline);
  const TensorMap expected = outline_of(options);
  for (const auto& [name, tensor] : outline) {
    const Tensor* there = expected.find(name);
    check(there != nullptr, "tensor '", name, "' is none of the model's");
    check(tensor.shape() == there->shape(), "tensor '", name, "' has shape ", tensor.shape(), ", the model's has ",
          there->shape());
  }
  for (const auto& [name, _] : expected)
    check(outline.find(name) != nullptr, "there is no tensor '", name, "', which the model has");
}

}  // namespace isonorm::exchange
