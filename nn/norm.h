// Norm layers: the stream's own (its connections: nn/residual/), and the plain ones for use anywhere.
#pragma once

#include <optional>

#include "autograd/fused/add_norm.h"
#include "autograd/ops/norm.h"
#include "nn/residual/connection.h"

namespace isonorm::nn {

struct NormLayerOptions {
  double eps = 1e-5;
  bool affine = true;  // a learned gain (ones) and, for LayerNorm, bias (zeros)
  bool bias = true;    // false: of LayerNorm's two the gain alone
};

// LayerNorm over the last dimension of size `width` (Ba et al., 1607.06450): parameters weight and bias.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t width, NormLayerOptions options = {});
  double eps() const { return eps_; }
  Parameter weight, bias;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double eps_;
};

// RMSNorm over the last dimension (Zhang & Sennrich, 1910.07467): parameter weight.
class RmsNorm : public Module {
 public:
  explicit RmsNorm(int64_t width, NormLayerOptions options = {});
  double eps() const { return eps_; }
  Parameter weight;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  double eps_;
};

struct StreamNormOptions {
  double eps = 1e-5;
  // A learned gain and bias of width d, where it normalizes; to be handed over with raw storage only (docs/normalization.md).
  bool affine = false;
  bool bias = true;       // false: of the two the gain alone
  bool normalize = true;  // false: the bare stream goes on to the readers, which breaks the equivalence of the forms
  // The rows that the gain acts on are more than what readers read: it stays with them, in d entries in every form.
  bool keeps_gain = false;
  bool folded = false;  // gains that are handed over are in the readers already: only kept ones are there

  StreamNormOptions keeping_gain() const {
    StreamNormOptions o = *this;
    o.keeps_gain = true;
    return o;
  }
};

// A connection with a norm of the stream. Gain and bias belong to the Pre-LN model's d coordinates; forms that store
// d - 1 of them, and streams that centre their readers, hand gain and bias to the readers, whose weights take them up:
// A diag(gain), b + A bias. Where it keeps them, the normalised row is expanded to its d entries, which they act on.
class StreamNorm : public Connection {
 public:
  StreamNorm(const Stream& stream, StreamNormOptions options = {});
  Tensor reader_weight(const Tensor& weight) const override;
  Tensor reader_bias(const Tensor& weight, const Tensor& bias) const override;

  const NormSpec& spec() const { return spec_; }
  bool keeps_gain() const { return keeps_gain_; }
  Parameter weight, bias;  // undefined where not affine, the bias also without one

 protected:
  // norm(x); x + branch and its norm, in one pass. [..., stored width] each, d entries behind a gain that is kept; the
  // norm's dtype is `as`, by default x's.
  Tensor normalize(const Tensor& x, std::optional<DType> as = {}) const;
  AddNorm add_normalize(const Tensor& x, const Tensor& branch, std::optional<DType> as = {}) const;

 private:
  bool hands_over() const;  // whether the readers take up gain and bias
  bool apart() const;       // whether gain and bias are not the norm's own in the stored coordinates
  Tensor gain() const { return apart() ? Tensor() : weight(); }
  Tensor offset() const { return apart() ? Tensor() : bias(); }
  Tensor with_gain(const Tensor& rows) const;

  NormSpec spec_;
  bool keeps_gain_;
};

}  // namespace isonorm::nn
