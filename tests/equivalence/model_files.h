// Small models with weights that hide nothing: means everywhere, gains and biases of norms that are not 1 and 0.
#pragma once

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "equivalence/verify/verify.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "streams/parametrize.h"
#include "tests/support/compare.h"

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

inline nn::GptOptions small_gpt(nn::TransformerOptions more = {}, bool tied = false) {
  more.width = 8, more.depth = 2, more.heads = 2;
  return {.vocab = 11, .context = 6, .tied = tied, .transformer = more};
}

inline nn::VitOptions small_vit(nn::TransformerOptions more = {}, bool mean_pool = false) {
  more.width = 9, more.depth = 2, more.heads = 3;
  return {.image = 6, .channels = 2, .patch = 3, .classes = 4, .mean_pool = mean_pool, .transformer = more};
}

}  // namespace isonorm::test
