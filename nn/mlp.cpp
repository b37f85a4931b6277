#include "nn/mlp.h"

#include "autograd/fused/mlp.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

Mlp::Mlp(const Connection& connection, MlpOptions o)
    : activation_(o.activation),
      gate_(o.activation == Activation::swiglu
                ? &add("gate", Linear(connection.stream().width(), o.hidden, {.bias = o.bias, .reads = &connection}))
                : nullptr),
      fc1_(add("fc1", Linear(connection.stream().width(), o.hidden, {.bias = o.bias, .reads = &connection}))),
      fc2_(add("fc2", BranchOutput(o.hidden, connection.stream(), o.bias, o.branch))) {}

Tensor Mlp::forward(const Tensor& x) {
  switch (activation_) {
    case Activation::gelu:
    case Activation::gelu_tanh: {
      const Mapped first = fc1_.mapped();
      const GeluForm form = activation_ == Activation::gelu ? GeluForm::erf : GeluForm::tanh;
      return fc2_.ending(
          [&](const Tensor& w2, const Tensor& b2) { return mlp(x, first.weight, first.bias, w2, b2, form); });
    }
    case Activation::relu:
      return fc2_(relu(fc1_(x)));
    case Activation::silu:
      return fc2_(silu(fc1_(x)));
    case Activation::swiglu:
      return fc2_(silu((*gate_)(x)) * fc1_(x));
  }
  return {};
}

}  // namespace isonorm::nn
