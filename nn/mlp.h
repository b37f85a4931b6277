// The feed-forward half of a Transformer block.
#pragma once

#include "nn/linear.h"
#include "nn/norm.h"

namespace isonorm::nn {

enum class Activation { gelu, gelu_tanh, relu, silu };

struct MlpOptions {
  int64_t hidden = 256;
  Activation activation = Activation::gelu;
  bool bias = true;
};

// fc2(activation(fc1(x))): a reader [hidden, d], a writer [d, hidden].
class Mlp : public Module {
 public:
  Mlp(const StreamNorm& norm, MlpOptions options);
  Tensor forward(const Tensor& x) override;

 private:
  Activation activation_;
  Linear& fc1_;
  Linear& fc2_;
};

}  // namespace isonorm::nn
