#include "autograd/ops/norm.h"

#include "autograd/ops/norm_rule.h"
#include "autograd/ops/pointwise.h"
#include "core/kernels/norm.h"
#include "core/view.h"

namespace isonorm {
namespace detail {

void check_norm(const char* op, const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  check_same_device(op, x, gain, bias);
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1, op, ": the input has rank 0, expected [..., width]");
  for (const Tensor* t : {&gain, &bias}) {
    if (!t->defined()) continue;
    const char* what = t == &gain ? "gain " : "bias ";
    check(t->shape() == Dims{x.size(-1)}, op, ": ", what, t->shape(), " does not fit input ", x.shape());
    check(t->dtype() == x.dtype(), op, ": ", what, "is ", t->dtype(), ", the input ", x.dtype());
  }
  check(spec.eps >= 0, op, ": eps is ", spec.eps, ", expected at least 0");
  check(spec.p > 0 && spec.p <= 1, op, ": p is ", spec.p, ", expected a share in (0, 1]");
  check(spec.p == 1 || spec.kind == NormKind::rms, op, ": p is ", spec.p, ", but only rms_norm has a partial form");
}

NormResult norm_forward(const NormSpec& spec, const Tensor& x, const Tensor& branch, const Tensor& gain,
                        const Tensor& bias) {
  const int64_t rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
  NormResult r{empty_like(x), branch.defined() ? empty_like(x) : Tensor(),
               empty({rows, 2}, {acc_dtype(x.dtype()), x.device()})};
  kernels::norm_forward.on(x.device(), spec, {r.y, r.sum, r.stats},
                           {x, branch, detached::contiguous(gain), detached::contiguous(bias)});
  return r;
}

NormTape::NormTape(const NormSpec& s, const Tensor& input, const Tensor& g, const Tensor& bias,
                   const NormResult& result)
    : spec(s),
      normalized(!g.defined() && !bias.defined()),
      x(save_activation(normalized ? result.y : input)),
      stats(result.stats),
      gain(g) {}

NormTape::Gradients NormTape::backward(const Tensor& dy, const Tensor& dsum, bool wants_gain, bool wants_bias) const {
  const Tensor source = x, scale = gain;
  const Dims width{source.size(-1)};
  Gradients d{empty_like(dy), {}, {}};
  if (wants_gain) d.dgain = empty(width, dy.options());
  if (wants_bias) d.dbias = empty(width, dy.options());
  kernels::norm_backward.on(
      dy.device(), spec, {d.dx, d.dgain, d.dbias},
      {detached::contiguous(dy), detached::contiguous(dsum), source, normalized, stats, detached::contiguous(scale)});
  return d;
}

}  // namespace detail

namespace {
Tensor normalize_as(const char* op, const Tensor& x, const NormSpec& spec, const Tensor& gain, const Tensor& bias) {
  detail::check_norm(op, spec, x, gain, bias);
  if (spec.kind == NormKind::none) {
    const Tensor scaled = gain.defined() ? mul(x, gain) : x;
    return bias.defined() ? add(scaled, bias) : scaled;
  }
  const Tensor input = detached::contiguous(x);
  const detail::NormResult r = detail::norm_forward(spec, input, {}, gain, bias);
  if (Node* n = track(name_of(spec.kind), {&r.y}, {&x, &gain, &bias}))
    n->backward = [tape = detail::NormTape(spec, input, gain, bias, r)](Flow& g) {
      const auto d = tape.backward(g.out(), {}, g.wants(1), g.wants(2));
      g.give(0, d.dx);
      if (g.wants(1)) g.give(1, d.dgain);
      if (g.wants(2)) g.give(2, d.dbias);
    };
  return r.y;
}
}  // namespace

Tensor normalize(const Tensor& x, const NormSpec& spec, const Tensor& gain, const Tensor& bias) {
  return normalize_as("normalize", x, spec, gain, bias);
}

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("layer_norm", x, {NormKind::layer, o.eps, o.p}, gain, bias);
}
Tensor rms_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("rms_norm", x, {NormKind::rms, o.eps, o.p}, gain, bias);
}
Tensor crms_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("crms_norm", x, {NormKind::crms, o.eps, o.p}, gain, bias);
}
Tensor crms_isometric_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("crms_isometric_norm", x, {NormKind::crms_isometric, o.eps, o.p}, gain, bias);
}

}  // namespace isonorm
