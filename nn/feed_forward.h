// The feed-forward network (MLP) of a Transformer block.
#pragma once

#include "nn/branch.h"
#include "nn/norm.h"

namespace isonorm::nn {

// swiglu: silu(gate(x)) * fc1(x) (Shazeer, 2002.05202). quick_gelu: x sigmoid(1.702 x) (Hendrycks & Gimpel, 1606.08415,
// section 2; CLIP).
enum class Activation { gelu, gelu_tanh, relu, silu, swiglu, quick_gelu };
inline constexpr const char* kActivationNames[] = {"gelu", "gelu_tanh", "relu", "silu", "swiglu", "quick_gelu"};
constexpr const char* name_of(Activation a) { return kActivationNames[static_cast<size_t>(a)]; }

struct FeedForwardOptions {
  int64_t hidden = 0;  // 0: 4 width
  Activation activation = Activation::gelu;
  bool bias = true;
  BranchOptions branch = {};
  std::optional<NormLayerOptions> inner_norm = {};  // a LayerNorm of the hidden entries, before fc2 (2210.06423)
};

// fc2(activation(fc1(x))), x [..., width] -> [..., width], as in torch.nn.TransformerEncoderLayer. Weights: fc1
// [hidden, width], fc2 [width, hidden]. swiglu: fc2(silu(gate(x)) * fc1(x)) with a second weight gate [hidden, width].
class FeedForward : public Module {
 public:
  FeedForward(int64_t width, FeedForwardOptions options);
  FeedForward rebuild() const { return FeedForward(width_, options_); }

  std::vector<Linear*> linears() const;  // fc1, gate of swiglu, fc2

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int64_t width_;
  FeedForwardOptions options_;  // complete: hidden is not 0
  Linear* gate_;                // null unless the activation is swiglu
  Linear& fc1_;
  LayerNorm* inner_norm_;  // null if there is none
  BranchOutput& fc2_;
};

}  // namespace isonorm::nn
