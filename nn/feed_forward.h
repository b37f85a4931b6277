// The feed-forward half of a Transformer block.
#pragma once

#include "nn/branch.h"
#include "nn/norm.h"

namespace isonorm::nn {

// swiglu: silu of a gate of its own times the first map (Shazeer, 2002.05202). quick_gelu: x sigmoid(1.702 x) (Hendrycks & Gimpel,
// 1606.08415, section 2; CLIP).
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

// torch.nn.Linear, activation and Linear, as in TransformerEncoderLayer: fc2(activation(fc1(x))), x [..., width] -> [..., width]: weights [hidden, width] and [width, hidden]. swiglu:
// fc2(silu(gate(x)) * fc1(x)) with a second weight [hidden, width].
class FeedForward : public Module {
 public:
  FeedForward(int64_t width, FeedForwardOptions options);
  FeedForward rebuild() const { return FeedForward(width_, options_); }

  std::vector<Linear*> linears() const;  // fc1, gate of swiglu, fc2

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  FeedForward(FeedForwardOptions complete, int64_t width);
  Tensor hidden(const Tensor& x) const;  // activation(fc1(x))

  int64_t width_;
  FeedForwardOptions options_;  // hidden is not 0
  Linear* gate_;                // of swiglu only
  Linear& fc1_;
  LayerNorm* inner_norm_;  // null: none
  BranchOutput& fc2_;
};

}  // namespace isonorm::nn
