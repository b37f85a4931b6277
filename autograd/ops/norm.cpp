#include "autograd/ops/norm.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "core/formulas/norm_spec.h"
#include "core/kernels/norm.h"
#include "core/view.h"

namespace isonorm::detail {

struct NormResult {
  Tensor y, sum, stats;
};

// Throws in the name of `op` if the arguments do not fit.
void check_norm(const char* op, const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias,
                DType as);

// Normalizes x, or x + branch if branch is defined (both contiguous). The sum is then also a result, of x's dtype, and
// is normalized as it is stored. y has the dtype `as`. No graph. Mixtures of bf16 and f32 are computed in f32, and each
// result is rounded once.
NormResult norm_forward(const NormSpec& spec, const Tensor& x, const Tensor& branch, const Tensor& gain,
                        const Tensor& bias, DType as);

// The tensors that the gradient of norm_forward() needs. Without gain and bias it keeps the result, which its reader
// keeps anyway, so that the input need not stay alive.
struct NormTape {
  NormSpec spec;
  DType input, computed_in;
  bool normalized;
  Saved rows, stats, gain;

  NormTape(const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias, const NormResult& result);

  struct Gradients {
    Tensor dx, dgain = {}, dbias = {};
    Tensor dbranch = {};  // dx in the branch's dtype, if the kernel gives it directly
  };
  // The input rows (x + branch for add_norm), up to a constant per row that a layer norm removes. No graph.
  Tensor input_values() const;
  // The norm of x by ordinary ops; gain and bias may be undefined.
  Tensor compose(const Tensor& x, const Tensor& gain, const Tensor& bias) const;

  // dx = d/dx of <dy, y> + dsum (which may be undefined); gradients of gain and bias if wanted, in the dtype of the
  // computation. branch: dtype of the branch that was added to x.
  Gradients backward(const Tensor& dy, const Tensor& dsum, bool wants_gain, bool wants_bias, DType branch) const;
};

}  // namespace isonorm::detail

namespace isonorm {

namespace detail {
namespace {

// The norm's dtype of computation: the tensors' common dtype, or f32 for a mixture.
DType common_dtype(DType as, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors)
    if (t->defined() && t->dtype() != as) return DType::f32;
  return as;
}

// The rows of t as the kernels read them: converted to the dtype of the computation unless they take mixtures.
Tensor read_by_slot(const Tensor& t, Device device, DType computed) {
  const Tensor rows = detached::contiguous(t);
  return native_bf16(device) ? rows : detached::to(rows, computed);
}

}  // namespace

void check_norm(const char* op, const NormSpec& spec, const Tensor& x, const Tensor& gain, const Tensor& bias,
                DType as) {
  check_same_device(op, x, gain, bias);
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1, op, ": the input has rank 0, expected [..., width]");
  for (const Tensor* t : {&gain, &bias}) {
    if (!t->defined()) continue;
    const char* what = t == &gain ? "gain " : "bias ";
    check(t->shape() == Dims{x.size(-1)}, op, ": ", what, t->shape(), " does not fit input ", x.shape());
    check(fits_rows(t->dtype(), x.dtype()), op, ": ", what, "is ", t->dtype(), ", the input ", x.dtype());
  }
  check(fits_rows(x.dtype(), as) || fits_rows(as, x.dtype()), op, ": the input is ", x.dtype(),
        ", so the output cannot be ", as);
  check(spec.eps >= 0, op, ": eps is ", spec.eps, ", expected at least 0");
  check(spec.p > 0 && spec.p <= 1, op, ": p is ", spec.p, ", expected a share in (0, 1]");
  check(spec.p == 1 || spec.kind == NormKind::rms, op, ": p is ", spec.p, ", but only rms_norm has a partial form");
}

NormResult norm_forward(const NormSpec& spec, const Tensor& x, const Tensor& branch, const Tensor& gain,
                        const Tensor& bias, DType as) {
  const int64_t rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
  const Device device = x.device();
  const DType computed = common_dtype(as, {&x, &branch, &gain, &bias});
  const auto slot = [&](DType dtype) { return native_bf16(device) ? dtype : computed; };  // dtype of a kernel's result
  const auto in = [&](const Tensor& t) { return read_by_slot(t, device, computed); };
  NormResult r{empty(x.shape(), {slot(as), device}),
               branch.defined() ? empty(x.shape(), {x.dtype(), device}) : Tensor(),
               empty({rows, 2}, {acc_dtype(computed), device})};
  kernels::norm_forward.on(device, spec, {r.y, r.sum, r.stats}, {in(x), in(branch), in(gain), in(bias)});
  r.y = detached::to(r.y, as);
  return r;
}

NormTape::NormTape(const NormSpec& s, const Tensor& x, const Tensor& g, const Tensor& bias, const NormResult& result)
    : spec(s),
      input(x.dtype()),
      computed_in(common_dtype(result.y.dtype(), {&x, &g, &bias})),
      normalized(!g.defined() && !bias.defined()),
      rows(save_activation(normalized ? result.y : x)),
      stats(result.stats),
      gain(g) {}

NormTape::Gradients NormTape::backward(const Tensor& dy, const Tensor& dsum, bool wants_gain, bool wants_bias,
                                       DType branch) const {
  const Tensor source = rows, scale = gain;
  const Dims width{source.size(-1)};
  const Device device = dy.device();
  const TensorOptions computed{computed_in, device};
  const bool native = native_bf16(device);
  const auto in = [&](const Tensor& t) { return read_by_slot(t, device, computed_in); };
  Gradients d{empty(dy.shape(), {native ? input : computed_in, device})};
  if (native && branch != input) d.dbranch = empty(dy.shape(), {branch, device});
  if (wants_gain) d.dgain = empty(width, computed);
  if (wants_bias) d.dbias = empty(width, computed);
  kernels::norm_backward.on(device, spec, {d.dx, d.dgain, d.dbias, d.dbranch},
                            {in(dy), in(dsum), in(source), normalized, stats, in(scale)});
  return d;
}

Tensor NormTape::input_values() const {
  const Tensor source = rows.data();
  if (!normalized) return source;
  // Lacks the mean that a layer norm has subtracted: nothing depends on it.
  const Tensor inverse_roots = detached::narrow(stats.data(), 1, 1, 1);
  const Tensor by_row = detached::view(source, {inverse_roots.size(0), source.size(-1)});
  return detached::view(div(by_row, inverse_roots), source.shape());
}

Tensor NormTape::compose(const Tensor& rows, const Tensor& scale, const Tensor& bias) const {
  const Tensor x = to(rows, computed_in);
  const int64_t width = x.size(-1);
  const Tensor centred = spec.kind == NormKind::layer ? recentre(x, -1) : x;
  Tensor squares = sum(square(slice(centred, -1, 0, norm_entries(spec, width))), {-1}, true);
  if (spec.kind == NormKind::crms) squares = squares + square(sum(x, {-1}, true));
  const Tensor y = centred / sqrt(squares / static_cast<double>(norm_divisor(spec, width)) + spec.eps);
  const Tensor scaled = scale.defined() ? y * scale : y;
  return bias.defined() ? scaled + bias : scaled;
}

}  // namespace detail

namespace {
Tensor normalize_as(const char* op, const Tensor& x, const NormSpec& spec, const Tensor& gain, const Tensor& bias,
                    DType as) {
  detail::check_norm(op, spec, x, gain, bias, as);
  if (spec.kind == NormKind::none) {
    const Tensor scaled = gain.defined() ? mul(to(x, gain.dtype()), gain) : x;
    return to(bias.defined() ? add(to(scaled, bias.dtype()), bias) : scaled, as);
  }
  const Tensor input = detached::contiguous(x);
  const detail::NormResult r = detail::norm_forward(spec, input, {}, gain, bias, as);
  if (auto* n = track(name_of(spec.kind), {&r.y}, {&x, &gain, &bias}))
    n->backward = differentiable([tape = detail::NormTape(spec, input, gain, bias, r)](Flow& g) {
      if (g.needs_composition())
        return g.follow({tape.compose(g.attached(0, tape.input_values()), g.attached(1, tape.gain), g.attached(2))});
      const auto d = tape.backward(g.out(), {}, g.wants(1), g.wants(2), tape.input);
      g.give(0, d.dx);
      if (g.wants(1)) g.give(1, d.dgain);
      if (g.wants(2)) g.give(2, d.dbias);
    });
  return r.y;
}
}  // namespace

Tensor normalize(const Tensor& x, const NormSpec& spec, const Tensor& gain, const Tensor& bias,
                 std::optional<DType> as) {
  return normalize_as("normalize", x, spec, gain, bias, as.value_or(x.dtype()));
}

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("layer_norm", x, {NormKind::layer, o.eps, o.p}, gain, bias, x.dtype());
}
Tensor rms_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("rms_norm", x, {NormKind::rms, o.eps, o.p}, gain, bias, x.dtype());
}
Tensor crms_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("crms_norm", x, {NormKind::crms, o.eps, o.p}, gain, bias, x.dtype());
}
Tensor crms_isometric_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions o) {
  return normalize_as("crms_isometric_norm", x, {NormKind::crms_isometric, o.eps, o.p}, gain, bias, x.dtype());
}

AddNorm reference::add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain,
                            const Tensor& bias, std::optional<DType> as) {
  const Tensor sum = add(x, to(branch, x.dtype()));
  return {sum, normalize(sum, spec, gain, bias, as)};
}

AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain, const Tensor& bias,
                 std::optional<DType> as) {
  check_same_device("add_norm", x, branch);
  check(x.shape() == branch.shape(), "add_norm: shapes ", x.shape(), " and ", branch.shape(), " differ");
  check(detail::fits_rows(x.dtype(), branch.dtype()), "add_norm: dtypes ", x.dtype(), " and ", branch.dtype(),
        " differ");
  const DType normed = as.value_or(x.dtype());
  detail::check_norm("add_norm", spec, x, gain, bias, normed);
  if (use_reference() || spec.kind == NormKind::none) return reference::add_norm(x, branch, spec, gain, bias, as);
  const auto r = detail::norm_forward(spec, detached::contiguous(x), detached::contiguous(branch), gain, bias, normed);
  if (auto* n = track("add_norm", {&r.sum, &r.y}, {&x, &branch, &gain, &bias}))
    n->backward =
        differentiable([tape = detail::NormTape(spec, r.sum, gain, bias, r), added = branch.dtype()](Flow& g) {
          if (g.needs_composition()) {
            // Only the sum of x and branch matters.
            const Tensor x = g.attached(0, tape.input_values()), branch = g.attached(1),
                         sum = branch.defined() ? x + branch : x;
            return g.follow({sum, tape.compose(sum, g.attached(2, tape.gain), g.attached(3))});
          }
          const Tensor dsum = g.has_out(0) ? g.out(0) : Tensor();
          detail::NormTape::Gradients d{dsum};
          if (g.has_out(1)) d = tape.backward(g.out(1), dsum, g.wants(2), g.wants(3), added);
          g.give(0, d.dx);
          g.give(1, d.dbranch.defined() ? d.dbranch : d.dx);
          if (d.dgain.defined()) g.give(2, d.dgain);
          if (d.dbias.defined()) g.give(3, d.dbias);
        });
  return {r.sum, r.y};
}

}  // namespace isonorm
