#include "autograd/fused/group_norm.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/kernels/norm.h"
#include "core/view.h"

namespace isonorm {
namespace {

using kernels::GroupNormShape;

GroupNormShape shape_of(const char* op, const Tensor& x, int64_t outer, int64_t groups, const Tensor& gain,
                        const Tensor& bias, const GroupNormOptions& o) {
  check_same_device(op, x, gain, bias);
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 2, op, ": the input has shape ", x.shape(), ", expected [examples, ..., channels]");
  const int64_t channels = x.size(-1);
  check(groups > 0 && channels % groups == 0, op, ": ", groups, " groups do not divide ", channels, " channels of ",
        x.shape());
  check(o.kind == NormKind::layer || o.kind == NormKind::rms, op, ": kind is ", name_of(o.kind),
        ", expected layer_norm or rms_norm");
  check(o.eps >= 0, op, ": eps is ", o.eps, ", expected at least 0");
  check(o.p > 0 && o.p <= 1, op, ": p is ", o.p, ", expected a share in (0, 1]");
  check(o.p == 1 || o.kind == NormKind::rms, op, ": p is ", o.p, ", but only rms_norm has a partial form");
  for (const Tensor* t : {&gain, &bias}) {
    if (!t->defined()) continue;
    const char* what = t == &gain ? "gain " : "bias ";
    check(t->shape() == Dims{channels}, op, ": ", what, t->shape(), " does not fit input ", x.shape());
    check(detail::fits_rows(t->dtype(), x.dtype()), op, ": ", what, "is ", t->dtype(), ", the input ", x.dtype());
  }
  int64_t length = 1;
  for (int d = outer == 1 ? 0 : 1; d < x.rank() - 1; ++d) length *= x.size(d);
  return {outer,
          length,
          groups,
          channels / groups,
          norm_entries({o.kind, o.eps, o.p}, length),
          o.kind == NormKind::layer,
          o.eps_outside,
          o.eps};
}

Tensor computed(const Tensor& t) {
  return t.defined() ? detached::contiguous(detached::to(t, acc_dtype(t.dtype()))) : t;
}

// The norm by ordinary ops. It is computed in the accumulation dtype, which the statistics [outer, 1, groups, 1] keep;
// y has x's dtype.
struct Composed {
  Tensor y, mean, square;
};
Composed composed(const GroupNormShape& s, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const DType acc = acc_dtype(x.dtype());
  const Tensor rows = reshape(to(x, acc), {s.outer, s.length, s.groups, s.width});
  const Tensor counted = slice(rows, 1, 0, s.leading);
  const Tensor mean =
      s.centred ? isonorm::mean(counted, {1, 3}, true) : zeros({s.outer, 1, s.groups, 1}, rows.options());
  const Tensor apart = s.centred ? rows - mean : rows;
  const Tensor leading = slice(apart, 1, 0, s.leading), square = isonorm::mean(isonorm::square(leading), {1, 3}, true);
  // norm() has a derivative if all entries are 0; sqrt() has none.
  const Tensor root = s.eps_outside ? norm(leading, {1, 3}, true) / std::sqrt(static_cast<double>(s.entries())) + s.eps
                                    : sqrt(square + s.eps);
  Tensor y = reshape(apart / root, x.shape());
  if (gain.defined()) y = y * to(gain, acc);
  if (bias.defined()) y = y + to(bias, acc);
  return {to(y, x.dtype()), mean, square};
}

struct Normed {
  Tensor y, stats;
};

Normed fused(const char* op, const GroupNormShape& s, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const Tensor input = detached::contiguous(x), scale = computed(gain);
  const Normed out{empty_like(x), empty({s.outer, s.groups, s.kStats}, {acc_dtype(x.dtype()), x.device()})};
  if (x.numel() > 0)
    kernels::group_norm_forward.on(x.device(), s, {out.y, out.stats}, {input, scale, computed(bias)});
  else
    fill(out.stats, std::nan(""));  // no entries
  if (auto* n = track(op, {&out.y}, {&x, &gain, &bias}))
    n->backward = differentiable([s, x = save_activation(input), stats = out.stats, gain = save(scale)](Flow& g) {
      if (g.needs_composition()) return g.follow({composed(s, g.attached(0, x), g.attached(1, gain), g.attached(2)).y});
      const Tensor dy = detached::contiguous(g.out()), in = x;
      const auto sums = [&](int i) { return g.wants(i) ? empty({s.channels()}, stats.options()) : Tensor(); };
      const kernels::GroupNormGradients d{empty_like(dy), sums(1), sums(2)};
      if (dy.numel() > 0)
        kernels::group_norm_backward.on(dy.device(), s, d, {dy, detached::to(in, dy.dtype()), stats, gain});
      else
        for (const Tensor* t : {&d.dgain, &d.dbias})
          if (t->defined()) fill(*t, 0);
      g.give(0, d.dx);
      if (d.dgain.defined()) g.give(1, d.dgain);
      if (d.dbias.defined()) g.give(2, d.dbias);
    });
  return out;
}

}  // namespace

Tensor reference::group_norm(const Tensor& x, int64_t groups, const Tensor& gain, const Tensor& bias,
                             GroupNormOptions o) {
  return composed(shape_of("group_norm", x, x.size(0), groups, gain, bias, o), x, gain, bias).y;
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain, const Tensor& bias, GroupNormOptions o) {
  const GroupNormShape s = shape_of("group_norm", x, x.rank() > 0 ? x.size(0) : 0, groups, gain, bias, o);
  return use_reference() ? composed(s, x, gain, bias).y : fused("group_norm", s, x, gain, bias).y;
}

namespace {
// The shape of a batch norm: a group norm of a single example with a group for each channel.
GroupNormShape batch_shape(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  return shape_of("batch_norm", x, 1, x.rank() > 0 && x.size(-1) > 0 ? x.size(-1) : 1, gain, bias, {.eps = eps});
}
}  // namespace

Tensor reference::batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps,
                             BatchStatistics* statistics) {
  const Composed c = composed(batch_shape(x, gain, bias, eps), x, gain, bias);
  if (statistics) *statistics = {detach(flatten(c.mean)), detach(flatten(c.square))};
  return c.y;
}

Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps, BatchStatistics* statistics) {
  const GroupNormShape s = batch_shape(x, gain, bias, eps);
  if (use_reference()) return reference::batch_norm(x, gain, bias, eps, statistics);
  const Normed out = fused("batch_norm", s, x, gain, bias);
  if (statistics) {
    const auto column = [&](int64_t i) { return detached::reshape(detached::narrow(out.stats, 2, i, 1), {s.groups}); };
    *statistics = {column(0), column(1)};
  }
  return out.y;
}

}  // namespace isonorm
