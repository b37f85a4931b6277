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

FeedForward::FeedForward(int64_t width, FeedForwardOptions options) : FeedForward(complete(options, width), width) {}

FeedForward::FeedForward(FeedForwardOptions o, int64_t width)
    : width_(width),
      options_(o),
      gate_(o.activation == Activation::swiglu ? &add("gate", Linear(width, o.hidden, {.bias = o.bias})) : nullptr),
      fc1_(add("fc1", Linear(width, o.hidden, {.bias = o.bias}))),
      inner_norm_(o.inner_norm ? &add("inner_norm", LayerNorm(o.hidden, *o.inner_norm)) : nullptr),
      fc2_(add("fc2", BranchOutput(o.hidden, width, o.bias, o.branch))) {}

std::vector<Linear*> FeedForward::linears() const {
  return gate_ ? std::vector<Linear*>{&fc1_, gate_, &fc2_} : std::vector<Linear*>{&fc1_, &fc2_};
}

Tensor FeedForward::hidden(const Tensor& x) const {
  switch (options_.activation) {
    case Activation::gelu:
      return gelu(fc1_(x));
    case Activation::gelu_tanh:
      return gelu_tanh(fc1_(x));
    case Activation::relu:
      return relu(fc1_(x));
    case Activation::silu:
      return silu(fc1_(x));
    case Activation::swiglu:
      return silu((*gate_)(x)) * fc1_(x);
    case Activation::quick_gelu: {
      const Tensor h = fc1_(x);
      return h * sigmoid(h * 1.702);
    }
  }
  return {};
}

Tensor FeedForward::forward(const Tensor& x) {
  if (inner_norm_) return fc2_((*inner_norm_)(hidden(x)));
  if (options_.activation != Activation::gelu && options_.activation != Activation::gelu_tanh) return fc2_(hidden(x));
  const GeluForm form = options_.activation == Activation::gelu ? GeluForm::erf : GeluForm::tanh;
  const DType rows = x.dtype();
  return fc2_.ending(rows, [&](const Tensor& w2, const Tensor& b2) {
    return mlp(x, fc1_.weight(rows), fc1_.bias(rows), w2, b2, form);
  });
}

}  // namespace isonorm::nn
