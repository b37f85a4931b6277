// Norm layers over the last dimension.
#pragma once

#include <optional>

#include "autograd/ops/norm.h"
#include "nn/module.h"
#include "nn/residual/residual.h"

namespace isonorm::nn {

struct NormLayerOptions {
  double eps = 1e-5;
  bool affine = true;  // a learned gain (ones) and, for LayerNorm, bias (zeros)
  bool bias = true;    // false: only the gain
  double factor = 1;   // multiplies gain and bias; fixed
};

// factor (gain * normalize(x, spec) + bias), over the last dimension of size `width`: parameters weight and bias
// [width]. Throws on a wrong last dimension; none, the identity, takes every width.
class Norm : public Module {
 public:
  Norm(int64_t width, const NormSpec& spec, NormLayerOptions options = {});
  Norm rebuild() const { return Norm(width_, {kind_, spec_.eps, spec_.p}, options_); }

  using Module::operator();
  // Normalizes the sum of the residual stream, after adding a pending branch in the same pass. as: the dtype of the
  // result, by default the sum's.
  Tensor operator()(Residual& x, std::optional<DType> as = {}) const;

  int64_t width() const { return width_; }
  // The kind that was passed to the constructor.
  NormKind kind() const { return kind_; }
  // The formula that the norm computes.
  const NormSpec& spec() const { return spec_; }
  // Changes the formula. Parameters keep their values. With a compressed kind in place of another kind, rows have
  // width - 1 entries (is_compressed()).
  void set_spec(const NormSpec& spec) { spec_ = spec; }
  double eps() const { return spec_.eps; }
  const NormLayerOptions& layer_options() const { return options_; }

  Parameter &weight, &bias;  // undefined without affine or without a norm; bias also if options.bias is false

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  void check_width(const Tensor& x) const;
  // Gain and bias, both times the factor.
  Tensor gain(const Tensor& x) const;
  Tensor offset() const;

  int64_t width_;
  NormSpec spec_;
  NormLayerOptions options_;
  NormKind kind_;
};

// LayerNorm (Ba et al., 1607.06450): parameters weight and bias.
class LayerNorm : public Norm {
 public:
  explicit LayerNorm(int64_t width, NormLayerOptions o = {})
      : Norm(width, {.kind = NormKind::layer, .eps = o.eps}, o) {}
  LayerNorm rebuild() const { return LayerNorm(width(), layer_options()); }
};

// RMSNorm (Zhang & Sennrich, 1910.07467): parameter weight.
class RMSNorm : public Norm {
 public:
  explicit RMSNorm(int64_t width, NormLayerOptions o = {})
      : Norm(width, {.kind = NormKind::rms, .eps = o.eps},
             {.eps = o.eps, .affine = o.affine, .bias = false, .factor = o.factor}) {}
  RMSNorm rebuild() const { return RMSNorm(width(), layer_options()); }
};

}  // namespace isonorm::nn
