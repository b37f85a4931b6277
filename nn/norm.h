// Norm layers over the last dimension.
#pragma once

#include <functional>
#include <optional>

#include "autograd/ops/norm.h"
#include "nn/module.h"
#include "nn/residual/residual.h"

namespace isonorm::nn {

struct NormLayerOptions {
  double eps = 1e-5;
  bool affine = true;  // a learned gain (ones) and, for LayerNorm, bias (zeros)
  bool bias = true;    // false: only the gain
};

// gain * normalize(x, spec) + bias, over the last dimension of size `width`: parameters weight and bias [width].
class Norm : public Module {
 public:
  Norm(int64_t width, const NormSpec& spec, NormLayerOptions options = {});
  Norm rebuild() const { return Norm(width_, {own_kind_, spec_.eps, spec_.p}, options_); }

  using Module::operator();
  // Normalizes a residual stream. If a branch is pending, adds it in the same pass. as: the dtype of the result, by
  // default the stream's.
  Tensor operator()(Residual& x, std::optional<DType> as = {}) const;
  // The norm of x, and x + branch with its norm in one pass. x and branch [..., width]. as: the dtype of the normalized
  // rows, by default x's.
  Tensor normalize(const Tensor& x, std::optional<DType> as = {}) const;
  AddNorm add_normalize(const Tensor& x, const Tensor& branch, std::optional<DType> as = {}) const;

  int64_t width() const { return width_; }
  const NormSpec& spec() const { return spec_; }
  // Changes the formula of the norm. Parameters keep their values.
  void set_spec(const NormSpec& spec) { spec_ = spec; }
  double eps() const { return spec_.eps; }
  double factor() const { return factor_; }
  const NormLayerOptions& layer_options() const { return options_; }

  Parameter &weight, &bias;  // undefined without affine or without a norm; bias also if options.bias is false

  bool of_stream() const { return of_stream_; }
  // Makes it a norm of a residual stream (nn/stream_watch.h) in other coordinates: it computes this formula instead of
  // its own, gain and bias are the ones that its parametrisations give, and `after` is applied to the result.
  using Rows = std::function<Tensor(const Tensor& rows)>;
  void compute_as(NormKind kind, Rows after = {});
  // Undoes compute_as().
  void compute_as_own();
  NormKind own_kind() const { return own_kind_; }

 protected:
  Tensor forward(const Tensor& x) override { return normalize(x); }
  // Multiplies the result by a fixed number (LayerNorm Scaling).
  void scale_by(double factor) { factor_ = factor; }

 private:
  // Gain and bias, both times factor().
  Tensor gain(const Tensor& x) const;
  Tensor offset() const;

  int64_t width_;
  NormSpec spec_;
  NormLayerOptions options_;
  NormKind own_kind_;
  double factor_ = 1;
  bool of_stream_ = false;
  Rows after_;
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
      : Norm(width, {.kind = NormKind::rms, .eps = o.eps}, {.eps = o.eps, .affine = o.affine, .bias = false}) {}
  RMSNorm rebuild() const { return RMSNorm(width(), layer_options()); }
};

}  // namespace isonorm::nn
