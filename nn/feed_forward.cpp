#include "nn/feed_forward.h"

#include "autograd/fused/mlp.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

FeedForwardOptions complete(FeedForwardOptions o, int64_t width) {
  if (o.hidden == 0) o.hidden = 4 * width;
  return o;
}

}  // namespace

FeedForward::FeedForward(int64_t width, FeedForwardOptions o)
    : width_(width),
      options_(complete(o, width)),
      gate_(o.activation == Activation::swiglu ? &add("gate", Linear(width, options_.hidden, {.bias = o.bias}))
                                               : nullptr),
      fc1_(add("fc1", Linear(width, options_.hidden, {.bias = o.bias}))),
      inner_norm_(o.inner_norm ? &add("inner_norm", LayerNorm(options_.hidden, *o.inner_norm)) : nullptr),
      fc2_(add("fc2", BranchOutput(options_.hidden, width, o.bias, o.branch))) {}

std::vector<Linear*> FeedForward::linears() const {
  return gate_ ? std::vector<Linear*>{&fc1_, gate_, &fc2_} : std::vector<Linear*>{&fc1_, &fc2_};
}

Tensor FeedForward::forward(const Tensor& x) {
  const Activation act = options_.activation;
  const bool fused = (act == Activation::gelu || act == Activation::gelu_tanh) && !inner_norm_ && !fc1_.has_hooks() &&
                     !fc2_.has_hooks();
  if (fused) {
    const auto [w2, b2] = fc2_.operands(x.dtype());
    return fc2_.finish(mlp(x, fc1_.weight(x.dtype()), fc1_.bias(x.dtype()), w2, b2,
                           act == Activation::gelu ? GeluForm::erf : GeluForm::tanh));
  }
  Tensor h = fc1_(x);
  switch (act) {
    case Activation::gelu:
      h = gelu(h);
      break;
    case Activation::gelu_tanh:
      h = gelu_tanh(h);
      break;
    case Activation::relu:
      h = relu(h);
      break;
    case Activation::silu:
      h = silu(h);
      break;
    case Activation::swiglu:
      h = silu((*gate_)(x)) * h;
      break;
    case Activation::quick_gelu:
      h = h * sigmoid(h * 1.702);
      break;
  }
  return fc2_(inner_norm_ ? (*inner_norm_)(h) : h);
}

}  // namespace isonorm::nn
