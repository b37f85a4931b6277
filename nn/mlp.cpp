#include "nn/mlp.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

Mlp::Mlp(const StreamNorm& norm, MlpOptions o)
    : activation_(o.activation),
      fc1_(add("fc1", Linear(norm.stream().width(), o.hidden, {.bias = o.bias, .reads = &norm}))),
      fc2_(add("fc2", Linear(o.hidden, norm.stream().width(), {.bias = o.bias, .writes = &norm.stream()}))) {}

Tensor Mlp::forward(const Tensor& x) {
  switch (activation_) {
    case Activation::gelu:
      return fc2_(fc1_.gelu(x));
    case Activation::gelu_tanh:
      return fc2_(fc1_.gelu(x, GeluForm::tanh));
    case Activation::relu:
      return fc2_(relu(fc1_(x)));
    case Activation::silu:
      return fc2_(silu(fc1_(x)));
  }
  return {};
}

}  // namespace isonorm::nn
