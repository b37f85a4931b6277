// Small models whose weights are general: all have means, and gains and biases of norms are not 1 and 0. Their files,
// and changed copies.
#pragma once

#include "equivalence/verify/verify.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "tests/equivalence/room.h"

namespace isonorm::test {

inline double largest(const Tensor& x) { return amax(abs(x.to(DType::f64))).item(); }

// The state of the model after filling every parameter, and its description.
inline training::ModelFile filled_file(nn::Module& model, DType dtype = DType::f64) {
  NoGrad no_grad;
  training::ModelFile file;
  for (const streams::NamedParameter& p : streams::named_parameters(model)) {
    const bool norm = p.name.find("norm") != std::string::npos;
    const Tensor value = randn(p.tensor.shape(), {DType::f64}) * 0.3 + (norm && p.name.ends_with("weight") ? 1.0 : 0.2);
    file.state.add(p.name, value.to(dtype));
  }
  file.description = training::describe(model);
  return file;
}

template <class M, class O>
training::ModelFile file_of_model(const O& options, const streams::StreamOptions& on, DType dtype) {
  M model = streams::make<M>(options, on);
  return filled_file(model, dtype);
}
inline training::ModelFile file_of(const nn::GptOptions& o, const streams::StreamOptions& on = {},
                                   DType dtype = DType::f64) {
  return file_of_model<nn::Gpt>(o, on, dtype);
}
inline training::ModelFile file_of(const nn::VitOptions& o, const streams::StreamOptions& on = {},
                                   DType dtype = DType::f64) {
  return file_of_model<nn::Vit>(o, on, dtype);
}

// The file after conversion, as stored or before rounding.
inline training::ModelFile converted(const training::ModelFile& file, streams::Form to,
                                     const equivalence::ModelConversionOptions& o = {}) {
  const equivalence::ModelConversion c = equivalence::convert_model(file, to, o);
  return {c.conversion.state, c.description};
}
inline training::ModelFile converted_exactly(const training::ModelFile& file, streams::Form to) {
  const equivalence::ModelConversion c = equivalence::convert_model(file, to);
  return {c.conversion.exact, c.description};
}

// Undefined: leaves the tensor out. An unknown name: adds the tensor.
inline TensorMap with_tensor(const TensorMap& state, const std::string& name, const Tensor& value) {
  TensorMap changed;
  for (const auto& [key, tensor] : state)
    if (key != name)
      changed.add(key, tensor);
    else if (value.defined())
      changed.add(key, value);
  if (!state.find(name)) changed.add(name, value);
  return changed;
}
inline training::ModelFile with_tensor(training::ModelFile file, const std::string& name, const Tensor& value) {
  file.state = with_tensor(file.state, name, value);
  return file;
}
// Applies change(std::vector<double>&) to a copy of the tensor's numbers.
template <class F> training::ModelFile edited(const training::ModelFile& file, const std::string& name, F&& change) {
  const Tensor& t = file.state.at(name);
  std::vector<double> values = t.to(DType::f64).to_vector<double>();
  change(values);
  return with_tensor(file, name, from_span(std::span<const double>(values), t.shape()).to(t.dtype()));
}
inline training::ModelFile with_option(training::ModelFile file, const std::string& key, const std::string& value) {
  file.description.insert_or_assign("model." + key, value);
  return file;
}

inline nn::GptOptions small_gpt(nn::TransformerOptions more = {}, bool tied = false) {
  more.width = 8, more.depth = 2, more.heads = 2;
  return {.vocab = 11, .context = 6, .tied = tied, .transformer = more};
}

inline nn::VitOptions small_vit(nn::TransformerOptions more = {}, bool mean_pool = false) {
  more.width = 9, more.depth = 2, more.heads = 3;
  return {.image = 6, .channels = 2, .patch = 3, .classes = 4, .mean_pool = mean_pool, .transformer = more};
}

}  // namespace isonorm::test
