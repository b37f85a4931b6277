#include "autograd/ops/loss.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/kernels/loss.h"
#include "core/view.h"

namespace isonorm {

namespace {

Tensor along_last(const char* name, const Tensor& x, bool log) {
  const Tensor input = detached::contiguous(x);
  Tensor y = empty_like(input);
  kernels::softmax.on(x.device(), y, input, log);
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([y = save_activation(y), log](Flow& g) {
      if (grad_enabled()) {
        const Tensor& dy = g.out();
        const Tensor z = y;
        return g.give(0, log ? dy - exp(z) * sum(dy, {-1}, true) : z * (dy - sum(dy * z, {-1}, true)));
      }
      const Tensor dy = detached::contiguous(g.out());
      Tensor dx = empty_like(dy);
      kernels::softmax_backward.on(dy.device(), dx, dy, y, log);
      g.give(0, dx);
    });
  return y;
}

Tensor along(const char* name, const Tensor& x, int dim, bool log) {
  check(is_floating(x.dtype()), name, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1, name, ": the input has rank 0");
  const int d = normalize_dim(dim, x.rank(), name);
  if (d == x.rank() - 1) return along_last(name, x, log);
  return contiguous(transpose(along_last(name, transpose(x, d, -1), log), d, -1));
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) { return along("softmax", x, dim, false); }
Tensor log_softmax(const Tensor& x, int dim) { return along("log_softmax", x, dim, true); }

namespace {

void check_pair(const Tensor& x, const Tensor& target, const char* op) {
  check_same_device(op, x, target);
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.shape() == target.shape() && x.dtype() == target.dtype(), op, ": input ", x.dtype(), ' ', x.shape(),
        " and target ", target.dtype(), ' ', target.shape(), " differ");
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? sum(losses) : mean(losses);
}

}  // namespace

namespace {
// Per row: whether it counts, its class and the weight of the class (both 0 if it does not count).
struct Targets {
  Tensor counts, at, weight;
};
Targets targets_of(const Tensor& id, const Dims& rows, const Tensor& weight, int64_t ignore_index) {
  const Tensor counts = reshape(ne(id, static_cast<double>(ignore_index)), rows);
  const Tensor at = where(counts, reshape(id, rows), zeros({}, id.options()));
  const Tensor own = reshape(index_select(weight, 0, reshape(at, {at.numel()})), rows);
  return {counts, at, where(counts, own, zeros({}, weight.options()))};
}
Tensor entry_at(const Tensor& rows, const Tensor& at) { return squeeze(gather(rows, -1, unsqueeze(at, -1)), -1); }
// The mean divides by the sum of weights; it is 0 if this sum is 0.
Tensor reduced(const Tensor& losses, const Targets& t, Reduction reduction) {
  if (reduction != Reduction::mean) return reduced(losses, reduction);
  const Tensor total = sum(t.weight);
  return div(sum(losses), where(eq(total, 0), full({}, INFINITY, total.options()), total));
}

// cross_entropy() by its definition, for class weights, for soft targets (`id` undefined) and for second derivatives.
Tensor composed(const Tensor& logits, const Tensor& id, const Tensor& target, const CrossEntropyOptions& o) {
  const DType acc = acc_dtype(logits.dtype());
  const TensorOptions wide{acc, logits.device()};
  const double classes = static_cast<double>(logits.size(-1)), e = o.label_smoothing;
  const Tensor weight = o.weight.defined() ? to(o.weight, acc) : ones({logits.size(-1)}, wide);
  if (!id.defined()) {
    const Tensor q = add(mul(to(target, acc), 1 - e), e / classes);
    const Tensor losses = neg(sum(mul(mul(q, weight), log_softmax(to(logits, acc))), {-1}));
    return to(reduced(losses, o.reduction), logits.dtype());
  }
  const Targets t = targets_of(id, target.shape(), weight, o.ignore_index);
  // Ignored rows become zeros with weight 0, so their values and gradients do not matter, even if they are not finite.
  const Tensor none = zeros({}, wide), logp = log_softmax(where(unsqueeze(t.counts, -1), to(logits, acc), none));
  const Tensor at_target = mul(t.weight, entry_at(logp, t.at));
  const auto everywhere = [&] { return where(t.counts, sum(mul(logp, weight), {-1}), none); };
  const Tensor losses = neg(e == 0 ? at_target : add(mul(at_target, 1 - e), mul(everywhere(), e / classes)));
  return to(reduced(losses, t, o.reduction), logits.dtype());
}

// The number of classes, after checks that rows x [..., classes], i64 targets and the classes' weights fit.
int64_t check_classes(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight) {
  check_same_device(op, x, target, weight);
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1 && x.size(-1) > 0, op, ": rows have shape ", x.shape(), ", expected [..., classes]");
  check(!weight.defined() || (weight.shape() == Dims{x.size(-1)} && detail::fits_rows(weight.dtype(), x.dtype())), op,
        ": weight ", weight.defined() ? text(weight.dtype(), ' ', weight.shape()) : "", " does not fit rows ",
        x.dtype(), ' ', x.shape());
  return x.size(-1);
}
}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  const int64_t n = target.numel(), classes = check_classes("cross_entropy", logits, target, o.weight);
  Dims rows = logits.shape();
  --rows.rank;
  const bool distributions = is_floating(target.dtype());
  check(!distributions || (target.dtype() == logits.dtype() && target.shape() == logits.shape()),
        "cross_entropy: targets are ", target.dtype(), ' ', target.shape(), ", expected i64 ", rows, " or ",
        logits.dtype(), ' ', logits.shape());
  check(distributions || target.shape() == rows, "cross_entropy: targets ", target.shape(), " do not fit logits ",
        logits.shape());
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, "cross_entropy: label smoothing ", o.label_smoothing,
        " is outside of [0, 1]");
  if (distributions) return composed(logits, {}, target, o);
  const Tensor id = detail::checked_ids(target, classes, "cross_entropy", "the classes", o.ignore_index);
  if (o.weight.defined()) return composed(logits, id, target, o);
  const Tensor x = detached::reshape(detached::contiguous(logits), {n, classes});
  const TensorOptions acc{acc_dtype(x.dtype()), x.device()};
  const kernels::CrossEntropySpec spec{o.ignore_index, o.label_smoothing};
  const Tensor losses = empty({n}, acc), stats = empty({n, 2}, acc);
  kernels::cross_entropy.on(x.device(), losses, stats, x, id, spec);
  Tensor out, scale;
  if (o.reduction == Reduction::none) {
    out = to(reshape(losses, rows), x.dtype());
  } else {
    out = empty({}, x.options());
    scale = empty({}, acc);
    kernels::cross_entropy_scale.on(x.device(), scale, id, o.ignore_index, o.reduction == Reduction::mean);
    kernels::cross_entropy_total.on(x.device(), out, losses, scale);
  }
  if (auto* node = track("cross_entropy", {&out}, {&logits}))
    node->backward = differentiable([x = save(x), id = save(id), stats = save(stats), scale = save(scale), spec,
                                     target = save(target), o, shape = logits.shape()](Flow& g) {
      const Tensor logits = x.data();
      if (grad_enabled())
        return g.follow(composed(g.attached(0, detached::reshape(logits, shape)), id, target, o), g.take());
      const int64_t n = logits.size(0);
      const Tensor dy = to(g.out(), stats.get().dtype()), factor = scale;
      const Tensor weight = factor.defined() ? expand(mul(dy, factor), {n}) : reshape(dy, {n});
      const Tensor dx = empty_like(logits);
      kernels::cross_entropy_backward.on(dx.device(), dx, weight, logits, id, stats, spec);
      g.give(0, reshape(dx, shape));
    });
  return out;
}

Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& o) {
  const int64_t classes = check_classes("nll_loss", x, target, o.weight);
  const Dims rows = part(x.shape(), 0, x.rank() - 1);
  check(target.shape() == rows, "nll_loss: targets ", target.shape(), " do not fit log-probabilities ", x.shape());
  const Tensor id = detail::checked_ids(target, classes, "nll_loss", "the classes", o.ignore_index);
  const TensorOptions wide{acc_dtype(x.dtype()), x.device()};
  const Targets t =
      targets_of(id, rows, o.weight.defined() ? to(o.weight, wide.dtype) : ones({classes}, wide), o.ignore_index);
  // Ignored rows become 0 before they are multiplied: their values do not matter, even if they are not finite.
  const Tensor at_target = where(t.counts, to(entry_at(x, t.at), wide.dtype), 0);
  return to(reduced(neg(mul(t.weight, at_target)), t, o.reduction), x.dtype());
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair(x, target, "mse_loss");
  return reduced(square(sub(x, target)), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair(x, target, "l1_loss");
  return reduced(abs(sub(x, target)), reduction);
}

namespace {

// With c = d cut to [-delta, delta], both branches are c (d - c / 2).
Tensor huber_losses(const Tensor& d, double delta) {
  const Tensor c = clamp(d, -delta, delta);
  return mul(c, sub(d, mul(c, 0.5)));
}

}  // namespace

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, Reduction reduction) {
  check_pair(x, target, "huber_loss");
  check(delta > 0, "huber_loss: delta is ", delta, ", expected a positive one");
  return reduced(huber_losses(sub(x, target), delta), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, Reduction reduction) {
  check_pair(x, target, "smooth_l1_loss");
  check(beta >= 0, "smooth_l1_loss: beta is ", beta, ", expected at least 0");
  const Tensor d = sub(x, target);
  return reduced(beta == 0 ? abs(d) : div(huber_losses(d, beta), beta), reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target) {
  check_pair(x, target, "kl_div");
  const DType acc = acc_dtype(x.dtype());
  const Tensor given = to(target, acc), zero = zeros({}, given.options()), one = ones({}, given.options());
  // If a target is 0, it and x become probabilities of 1 before they are multiplied: no gradient is infinite or NaN.
  const Tensor none = eq(log_target ? exp(detach(given)) : detach(given), 0);
  const Tensor t = where(none, log_target ? zero : one, given), logp = where(none, zero, to(x, acc));
  const Tensor losses = mul(log_target ? exp(t) : t, sub(log_target ? t : log(t), logp));
  return to(reduced(where(none, zero, losses), reduction), x.dtype());
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair(x, target, "binary_cross_entropy_with_logits");
  const auto wide = [](const Tensor& t) { return to(t, acc_dtype(t.dtype())); };
  const Tensor z = wide(detach(x)), t = wide(detach(target));
  Tensor losses = to(add(mul(t, softplus(neg(z))), mul(sub(1, t), softplus(z))), x.dtype());
  if (auto* n = track("binary_cross_entropy_with_logits", {&losses}, {&x, &target}))
    n->backward = differentiable([x = save(x), target = save(target), wide](Flow& g) {
      const Tensor z = wide(x), t = wide(target), dy = to(g.out(), z.dtype());
      // p - t as (1 - t) p - t (1 - p), so that nothing cancels if a confident answer is right.
      if (g.wants(0)) g.give(0, mul(dy, sub(mul(sub(1, t), sigmoid(z)), mul(t, sigmoid(neg(z))))));
      if (g.wants(1)) g.give(1, neg(mul(dy, z)));
    });
  return reduced(losses, reduction);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair(x, target, "binary_cross_entropy");
  if (x.device() == kCpu && x.numel() > 0) {
    const double least = amin(detach(x)).item(), most = amax(detach(x)).item();
    check(least >= 0 && most <= 1, "binary_cross_entropy: probabilities from ", least, " to ", most,
          ", expected them in [0, 1]");
  }
  const auto wide = [](const Tensor& t) { return to(t, acc_dtype(t.dtype())); };
  const auto ln = [](const Tensor& p) { return clamp_min(log(p), -100); };
  const Tensor p = wide(detach(x)), t = wide(detach(target));
  Tensor losses = to(neg(add(mul(t, ln(p)), mul(sub(1, t), ln(sub(1, p))))), x.dtype());
  if (auto* n = track("binary_cross_entropy", {&losses}, {&x, &target}))
    n->backward = differentiable([x = save(x), target = save(target), wide, ln](Flow& g) {
      const Tensor p = wide(x), t = wide(target), q = sub(1, p), dy = to(g.out(), p.dtype());
      if (g.wants(0)) g.give(0, mul(dy, div(sub(p, t), clamp_min(mul(p, q), 1e-12))));
      if (g.wants(1)) g.give(1, mul(dy, sub(ln(q), ln(p))));
    });
  return reduced(losses, reduction);
}

}  // namespace isonorm
