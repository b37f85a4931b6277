#include "equivalence/explain/hypotheses.h"

#include <cmath>
#include <tuple>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "equivalence/explain/models.h"

namespace isonorm::equivalence {
namespace {

using Result = std::optional<Tried>;

bool gradient(const Evidence& e) { return e.what.stage == Stage::gradient; }
double off(const Pair& p) { return off_by(p.value, p.reference, p.scale); }

// True if rows sum to 0 along an axis, up to the rounding of a sum.
bool sums_to_zero(const Evidence& e, const Tensor& x, int dim) {
  return sum_along(x, dim) <= 64 * static_cast<double>(x.size(dim)) * e.eps;
}

// A difference that is constant along an axis along which A's or B's tensor sums to 0. Takes the axis with the
// smallest rest.
Result constant_along(const Evidence& e, const std::function<std::string(int dim)>& sentence) {
  const auto& [a, b] = std::tie(e.pair.reference, e.pair.value);
  const Tensor d = b - a;
  Result best;
  for (int dim = 0; dim < d.rank(); ++dim) {
    if (d.size(dim) < 2 || (e.dim >= 0 && dim != e.dim) || !(sums_to_zero(e, a, dim) || sums_to_zero(e, b, dim)))
      continue;
    const double left = largest_entry(d - mean(d, {dim}, true)) / e.pair.scale;
    if (!best || left < best->left) best = Tried{off(e.pair), left, sentence(dim)};
  }
  return best;
}

Result ones(const Evidence& e) {
  if (!gradient(e) || e.what.side != Side::input) return {};
  Recorded upstream = e.what, bias = e.what;
  upstream.side = Side::output, bias.side = Side::parameter, bias.of += ".bias";
  const auto y = e.find(upstream), b = e.find(bias);
  if (!y && !b) return {};
  const Tensor& g = y ? y->reference : b->reference;
  if (g.rank() == 0) return {};
  const double size = largest_entry(g), most = std::max(e.pair.scale, largest_entry(e.pair.value));
  if (largest_entry(g - mean(g, {g.rank() - 1}, true)) > 64 * e.eps * size || most > 1000 * e.eps * size) return {};
  return Tried{
      off(e.pair), 0,
      text(
          "a gradient of ones: the gradient that enters the norm is the same for every entry, so its backward gives 0, "
          "and the rest, at most ",
          scientific(most), ", is rounding (send random numbers in)")};
}

Result gain_plus_one(const Evidence& e) {
  if (gradient(e) || e.what.side != Side::parameter || e.pair.reference.rank() != 1) return {};
  const Tensor d = e.pair.value - e.pair.reference;
  const double more = std::round(mean(d).item());
  if (std::abs(more) != 1) return {};
  return Tried{off(e.pair), largest_entry(d - more) / e.pair.scale,
               text("a gain that is stored less 1 on one side: B's entries are A's ", more > 0 ? "+" : "-", " 1")};
}

// The distance of B's matrix from A's transposed.
double off_transposed(const Pair& p) { return off_by(p.value, contiguous(transpose(p.reference, 0, 1)), p.scale); }

// A gradient alone may be transposed by a backward, so it counts only together with its parameter.
Result transposed(const Evidence& e) {
  const auto square = [](const Tensor& r) { return r.rank() == 2 && r.size(0) == r.size(1) && r.size(0) > 1; };
  if (!square(e.pair.reference)) return {};
  if (gradient(e)) {
    const auto w = e.find({e.what.step, Stage::before, Side::parameter, e.what.of});
    if (!w || !square(w->reference) || !(off_transposed(*w) <= e.tolerance) || off(*w) <= e.tolerance) return {};
  }
  return Tried{off(e.pair), off_transposed(e.pair), "a matrix that is stored transposed: map it with transpose"};
}

// A factor of a gradient counts only if all gradients of the step share it.
Result factor(const Evidence& e) {
  const Pair& p = e.pair;
  if (p.reference.numel() < 2 || p.scale == 0) return {};
  const Tensor r = p.reference / p.scale, v = p.value / p.scale;
  const double by = sum(v * r).item() / sum(square(r)).item();
  if (std::abs(by) <= 1e-6) return {};
  const double whole = std::round(1 / by);
  std::string found = text("a factor of ", factor_text(by),
                           whole >= 2 && std::abs(by * whole - 1) < 1e-3 ? text(", about 1 / ", whole) : "");
  if (gradient(e)) {
    const std::vector<Pair> all = e.gradients();
    for (const Pair& g : all)
      if (g.scale > 0 && !(off_by(g.value, g.reference * by, g.scale * std::max(1.0, std::abs(by))) <= e.tolerance))
        return {};
    if (all.size() > 1) found += text(", of all ", all.size(), " gradients");
  }
  return Tried{off(p), off_by(v, r * by, 1), found};
}

Result missing_mean(const Evidence& e) {
  if (!gradient(e)) return {};
  const auto& [a, b] = std::tie(e.pair.reference, e.pair.value);
  const auto sums = [&, &a = a, &b = b](int dim) {
    return text("A's sums along dimension ", dim, " are ", scientific(sum_along(a, dim)), " of its largest entry, B's ",
                scientific(sum_along(b, dim)));
  };
  return constant_along(e, [&](int dim) {
    return text("a norm's backward without its mean term on one side (the difference is constant along the stream): ",
                sums(dim));
  });
}

Result mean_taken_off(const Evidence& e) {
  if (gradient(e) || e.what.side != Side::parameter) return {};
  return constant_along(e, [](int dim) {
    return text("the mean along dimension ", dim,
                " is missing on one side (the difference is constant there): map it with recentre");
  });
}

// Input and output of a layer in A and B.
struct Layer {
  Pair x, y;
  std::optional<Pair> gain, bias;

  NormRows rows(bool of_b) const {
    const auto side = [of_b](const Pair& p) { return of_b ? p.value : p.reference; };
    return {side(x), side(y), gain ? side(*gain) : Tensor{}, bias ? side(*bias) : Tensor{}};
  }
};

std::optional<Layer> layer(const Evidence& e) {
  if (e.what.stage != Stage::forward || e.what.side != Side::output) return {};
  const Dims shape = e.pair.reference.shape();
  Recorded what = e.what;
  what.side = Side::input;
  auto x = e.find(what);
  if (!x) x = e.previous();
  if (!x || shape.rank < 1 || !(x->reference.shape() == shape)) return {};
  const auto vector = [&](const char* name) {
    auto found = e.find({e.what.step, Stage::before, Side::parameter, e.what.of + name});
    return found && found->reference.shape() == Dims{shape[shape.rank - 1]} ? found : std::nullopt;
  };
  return Layer{*x, e.pair, vector(".weight"), vector(".bias")};
}

// Tests a norm as A computes it, with one thing replaced by what B may have. change(A's model, B's rows) returns the
// models to try.
Result norm(const Evidence& e, const std::function<std::vector<NormModel>(const NormModel&, const NormRows&)>& change,
            const std::function<std::string(const NormModel& a, const NormModel& b)>& sentence) {
  const auto l = layer(e);
  if (!l) return {};
  const auto a = fit_norm(l->rows(false), e.tolerance);
  if (!a) return {};
  const NormRows b = l->rows(true);
  const double before = a->off(b);
  if (!(before > e.tolerance)) return {};
  Result best;
  for (const NormModel& m : change(*a, b))
    if (const double left = m.off(b); !best || left < best->left) best = Tried{before, left, sentence(*a, m)};
  return best;
}

Result norm_divisor(const Evidence& e) {
  const int64_t n = e.pair.reference.rank() ? e.pair.reference.size(-1) : 0;
  return norm(
      e,
      [n](const NormModel& a, const NormRows&) {
        std::vector<NormModel> all;
        for (const int more : {-1, 0, 1})
          if (more != a.more_divisor && n + more > 0) all.push_back(a), all.back().more_divisor = more;
        return all;
      },
      [n](const NormModel& a, const NormModel& b) {
        const double of_a = static_cast<double>(n + a.more_divisor), of_b = static_cast<double>(n + b.more_divisor);
        return text("another divisor in the norm: B divides by ", of_b, ", A by ", of_a, " (a ratio of sqrt(", of_b,
                    " / ", of_a, ") = ", printed("%.6g", std::sqrt(of_b / of_a)), ')');
      });
}

Result norm_gain(const Evidence& e) {
  return norm(
      e,
      [](const NormModel& a, const NormRows& b) {
        std::vector<NormModel> all;
        for (const double more : {-1.0, 0.0, 1.0})
          if (more != a.more_gain && b.gain.defined()) all.push_back(a), all.back().more_gain = more;
        return all;
      },
      [](const NormModel& a, const NormModel& b) {
        const auto factor = [](const NormModel& m) {
          return m.more_gain == 0 ? "the gain" : m.more_gain > 0 ? "the gain + 1" : "the gain - 1";
        };
        return text("another use of the gain: A multiplies by ", factor(a), ", B by ", factor(b));
      });
}

Result norm_centring(const Evidence& e) {
  return norm(
      e,
      [](const NormModel& a, const NormRows&) {
        std::vector<NormModel> all;
        for (const NormKind kind : {NormKind::layer, NormKind::rms})
          if (kind != a.kind) all.push_back(a), all.back().kind = kind;
        return all;
      },
      [](const NormModel& a, const NormModel& b) {
        return text("another norm: A computes ", name_of(a.kind), ", B ", name_of(b.kind));
      });
}

Result norm_eps(const Evidence& e) {
  return norm(
      e, [](const NormModel& a, const NormRows& b) { return std::vector{a.with_eps_of(b)}; },
      [](const NormModel& a, const NormModel& b) {
        return text("another eps: B has ", printed("%.3g", b.eps), ", A ", printed("%.3g", a.eps));
      });
}

Result other_activation(const Evidence& e) {
  const auto l = layer(e);
  if (!l) return {};
  const Activation* const a = fit_activation(l->x.reference, l->y.reference, e.tolerance);
  const Activation* const b = fit_activation(l->x.value, l->y.value, e.tolerance);
  if (!a || !b || a == b) return {};
  return Tried{off_by(a->of(l->x.value), l->y.value, 0), off_by(b->of(l->x.value), l->y.value, 0),
               text("another activation: A computes ", a->name, ", B ", b->name)};
}

// Like norm(), for an optimizer's step.
Result update(const Evidence& e, const std::function<UpdateModel(const UpdateModel&, const UpdateRows&)>& change,
              const std::function<std::string(const UpdateModel& a, const UpdateModel& b)>& sentence) {
  if (e.what.stage != Stage::after) return {};
  Recorded before = e.what, last = e.what, g = e.what;
  before.stage = Stage::before, g.stage = Stage::gradient, --last.step;
  auto w = e.find(before);
  if (!w) w = e.find(last);
  const auto d = e.find(g);
  const Dims shape = e.pair.reference.shape();
  if (!w || !d || !(w->reference.shape() == shape) || !(d->reference.shape() == shape)) return {};
  const auto a = fit_update({w->reference, d->reference, e.pair.reference}, e.tolerance);
  if (!a) return {};
  const UpdateRows b{w->value, d->value, e.pair.value};
  const double differs = off_by(a->of(b), b.after, 0);
  if (!(differs > e.tolerance)) return {};
  const UpdateModel m = change(*a, b);
  return Tried{differs, off_by(m.of(b), b.after, 0), sentence(*a, m)};
}

// One of the two rates; 0 if rounding of the other one hides it.
std::string per_step(double x, double other) { return printed("%.3g", std::abs(x) < 1e-6 * std::abs(other) ? 0 : x); }

Result decay(const Evidence& e) {
  return update(
      e, [](const UpdateModel& a, const UpdateRows& b) { return a.with_decay_of(b); },
      [](const UpdateModel& a, const UpdateModel& b) {
        const bool hidden = a.adam && a.decay > 0 && std::abs(b.decay) < 1e-6 * a.decay;
        return text("another weight decay: B takes off ", per_step(b.decay, a.decay), " of each weight per step, A ",
                    per_step(a.decay, b.decay),
                    hidden ? " (Adam's first step hardly shows a decay that is added to the gradient)" : "");
      });
}

Result coupled_decay(const Evidence& e) {
  return update(
      e, [](const UpdateModel& a, const UpdateRows&) { return a.coupled_instead(); },
      [](const UpdateModel&, const UpdateModel&) {
        return text("a decay that B adds to the gradient, and A takes off the weights");
      });
}

Result rate(const Evidence& e) {
  return update(
      e, [](const UpdateModel& a, const UpdateRows& b) { return a.with_rate_of(b); },
      [](const UpdateModel& a, const UpdateModel& b) {
        return text("another learning rate: B has ", per_step(b.rate, a.rate), ", A ", per_step(a.rate, b.rate));
      });
}

Result adam_eps(const Evidence& e) {
  return update(
      e, [](const UpdateModel& a, const UpdateRows& b) { return a.adam ? a.with_eps_of(b) : a; },
      [](const UpdateModel& a, const UpdateModel& b) {
        return text("another eps of Adam: B has ", printed("%.3g", b.eps), ", A ", printed("%.3g", a.eps));
      });
}

constexpr Hypothesis kHypotheses[] = {
    {"a gradient of ones", "the gradient of a norm's input, and of its output or bias", ones},
    {"a gain less 1", "a vector of weights", gain_plus_one},
    {"a transposed matrix", "a square matrix", transposed},
    {"another divisor in a norm", "a norm's input and output", norm_divisor},
    {"gains read as 1 + gamma", "a norm's input, output and gain", norm_gain},
    {"a norm that is (not) centred", "a norm's input and output", norm_centring},
    {"another eps of a norm", "a norm's input and output", norm_eps},
    {"another activation", "an activation's input and output", other_activation},
    {"weight decay", "a parameter before and after a step, its gradient", decay},
    {"a decay in the gradient", "a parameter before and after a step, its gradient", coupled_decay},
    {"a learning rate", "a parameter before and after a step, its gradient", rate},
    {"another eps of Adam", "a parameter before and after a step, its gradient", adam_eps},
    {"a factor", "", factor},
    {"a norm's backward without its mean", "gradients", missing_mean},
    {"a mean taken off", "weights", mean_taken_off},
};

}  // namespace

std::span<const Hypothesis> hypotheses() { return kHypotheses; }

Explanation explain(const Evidence& evidence) {
  NoGrad no_grad;
  Explanation best;
  Evidence e = evidence;
  if (e.pair.scale == 0) e.pair.scale = largest_entry(e.pair.value);
  if (e.pair.reference.numel() == 0 || !std::isfinite(off(e.pair)) || off(e.pair) <= e.tolerance) return best;
  for (const Hypothesis& h : kHypotheses) {
    const auto tried = h.test(e);
    if (!tried) continue;
    best.tried.push_back(h.name);
    if (!tried->explains(e.tolerance)) continue;
    if (best.cause && std::max(best.left, e.tolerance) <= std::max(tried->left, e.tolerance)) continue;
    best.cause = &h, best.left = tried->left, best.sentence = tried->found;
  }
  return best;
}

}  // namespace isonorm::equivalence
