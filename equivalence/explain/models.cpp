#include "equivalence/explain/models.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "equivalence/judge/pairs.h"

namespace isonorm::equivalence {
namespace {

// A search uses at most this number of rows or entries. Its result is checked with all.
constexpr int64_t kFittedRows = 64, kFitted = 4096;

double inner_product(const Tensor& a, const Tensor& b) { return sum(a * b).item(); }

Tensor as_rows(const Tensor& x) { return reshape(x, {x.numel() / x.size(-1), x.size(-1)}); }

struct Centred {
  Tensor entries, squares;  // c [rows, n], S [rows, 1]
};

Centred centred(NormKind kind, const Tensor& x) {
  const Tensor c = kind == NormKind::layer ? recentre(x, 1) : x;
  const Tensor s = sum(square(c), {1}, true);
  return {c, kind == NormKind::crms ? s + square(sum(x, {1}, true)) : s};
}

Tensor with_gain(const Tensor& c, const Tensor& gain, double more) {
  return gain.defined() ? c * (gain + more) : c * (1 + more);
}

// The model with the smallest rest. A later model replaces an earlier one only if it leaves less than half.
template <class Model> struct Best {
  std::optional<Model> model = {};
  double left;
  void offer(const Model& next, double leaves) {
    if (leaves <= left && (!model || leaves < left / 2)) model = next, left = leaves;
  }
};

Tensor some_of(const Tensor& x) {
  const Tensor flat = reshape(x, {x.numel()});
  const int64_t step = (x.numel() + kFitted - 1) / kFitted;
  return step > 1 ? contiguous(slice(flat, 0, 0, x.numel(), step)) : flat;
}

UpdateRows some_of(const UpdateRows& r) { return {some_of(r.before), some_of(r.gradient), some_of(r.after)}; }

Tensor direction(const UpdateModel& m, const UpdateRows& r) {
  const Tensor g = m.coupled == 0 ? r.gradient : r.gradient + r.before * m.coupled;
  if (!m.adam) return g;
  return where(g == 0.0, zeros_like(g), g / (abs(g) + m.eps));
}

constexpr Activation kActivations[] = {
    {"GELU (erf)", gelu},
    {"GELU (tanh)", gelu_tanh},
    {"GELU (sigmoid)", [](const Tensor& x) { return x * sigmoid(x * 1.702); }},
    {"SiLU", silu},
    {"ReLU", relu},
    {"squared ReLU", [](const Tensor& x) { return square(relu(x)); }},
};

}  // namespace

double off_by(const Tensor& value, const Tensor& reference, double scale) {
  return deviation({{"", value, reference, scale > 0 ? scale : largest_entry(reference)}});
}

std::string factor_text(double k) {
  if (std::abs(k - 1) > 1e-3) return printed("%.6g", k);
  return text("1 ", k < 1 ? "- " : "+ ", scientific(std::abs(k - 1)));
}

double sum_along(const Tensor& g, int dim) {
  const double shift = largest_entry(sum(g, {dim}));
  return shift == 0 ? 0 : shift / largest_entry(g);
}

Tensor NormModel::of(const NormRows& r) const {
  const Tensor x = as_rows(r.x);
  const auto [c, s] = centred(kind, x);
  const double divisor = static_cast<double>(x.size(1) + more_divisor);
  Tensor y = with_gain(c, r.gain, more_gain) / sqrt(s / divisor + eps);
  if (r.bias.defined()) y = y + r.bias;
  return reshape(y, r.y.shape());
}

NormModel NormModel::with_eps_of(const NormRows& r) const {
  const Tensor x = as_rows(r.x), y = r.bias.defined() ? as_rows(r.y) - r.bias : as_rows(r.y);
  const auto [c, s] = centred(kind, x);
  const Tensor u = with_gain(c, r.gain, more_gain);
  const auto along = sum(y * u, {1}).to_vector<double>(), size = sum(square(u), {1}).to_vector<double>(),
             squares = s.to_vector<double>();
  double offsets = 0, weights = 0;
  for (size_t i = 0; i < along.size(); ++i) {
    if (size[i] == 0 || along[i] == 0) continue;  // a row of zeros, such as padding, has no information
    const double inverse = size[i] / along[i],
                 weight = 1 / std::pow(inverse, 4);  // rounding is proportional to inverse^2
    offsets += weight * (inverse * inverse - squares[i] / static_cast<double>(x.size(1) + more_divisor));
    weights += weight;
  }
  NormModel found = *this;
  found.eps = weights > 0 ? std::max(0.0, offsets / weights) : 0;
  return found;
}

std::optional<NormModel> fit_norm(const NormRows& all, double tolerance) {
  const Tensor x = as_rows(all.x), y = as_rows(all.y);
  const int64_t n = std::min<int64_t>(x.size(0), kFittedRows);
  const NormRows r{narrow(x, 0, 0, n), narrow(y, 0, 0, n), all.gain, all.bias};
  Best<NormModel> best{.left = tolerance};
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::crms})
    for (const double more_gain : {0.0, 1.0, -1.0})
      for (const int more : {0, 1, -1}) {
        if (x.size(1) + more < 1 || (kind == NormKind::crms && more != 1)) continue;
        const NormModel m = NormModel{kind, more, more_gain}.with_eps_of(r);
        best.offer(m, m.off(r));
      }
  if (best.model) best.model = best.model->with_eps_of(all);
  return best.model && best.model->off(all) <= tolerance ? best.model : std::nullopt;
}

const Activation* fit_activation(const Tensor& x, const Tensor& y, double tolerance) {
  const Activation* best = nullptr;
  double least = tolerance;
  for (const Activation& a : kActivations)
    if (const double left = off_by(a.of(x), y, 0); left <= least) best = &a, least = left;
  return best;
}

Tensor UpdateModel::of(const UpdateRows& r) const { return r.before * (1 - decay) - direction(*this, r) * rate; }

UpdateModel UpdateModel::coupled_instead() const {
  UpdateModel m = *this;
  m.coupled = rate != 0 ? decay / rate : 0, m.decay = 0;
  return m;
}

UpdateModel UpdateModel::with_decay_of(const UpdateRows& r) const {
  UpdateModel m = *this;
  const double squares = inner_product(r.before, r.before);
  m.decay = squares > 0 ? inner_product(r.before, r.before - direction(m, r) * rate - r.after) / squares : 0;
  return m;
}

UpdateModel UpdateModel::with_rate_of(const UpdateRows& r) const {
  UpdateModel m = *this;
  const Tensor step = r.before * decay + direction(m, r) * rate;
  const double squares = inner_product(step, step),
               by = squares > 0 ? inner_product(step, r.before - r.after) / squares : 0;
  m.decay *= by, m.rate *= by;
  return m;
}

namespace {

// Decay and rate together, by least squares.
UpdateModel with_both(UpdateModel m, const UpdateRows& r) {
  const Tensor u = direction(m, r), moved = r.before - r.after;
  const double ww = inner_product(r.before, r.before), uu = inner_product(u, u), wu = inner_product(r.before, u);
  const double wm = inner_product(r.before, moved), um = inner_product(u, moved), determinant = ww * uu - wu * wu;
  m.decay = 0, m.rate = 1;
  if (determinant <= 1e-12 * ww * uu) return m.with_rate_of(r);  // the two are parallel, or zero
  m.decay = (wm * uu - um * wu) / determinant, m.rate = (um * ww - wm * wu) / determinant;
  return m;
}

// The eps with the smallest rest.
template <class F> UpdateModel search_eps(const UpdateRows& r, F&& of_eps) {
  const auto left = [&](double log_eps) { return off_by(of_eps(std::exp(log_eps)).of(r), r.after, 0); };
  const double step = std::log(10.0) / 4, begin = -16 * std::log(10.0);
  double at = begin, least = left(begin);
  for (double x = begin; x <= 0; x += step)
    if (const double l = left(x); l < least) at = x, least = l;
  double low = at - step, high = at + step;  // the golden section from here
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < 60; ++i) {
    const double a = high - ratio * (high - low), b = low + ratio * (high - low);
    (left(a) <= left(b) ? high : low) = left(a) <= left(b) ? b : a;
  }
  const UpdateModel zero = of_eps(0.0), found = of_eps(std::exp((low + high) / 2));
  return off_by(zero.of(r), r.after, 0) <= off_by(found.of(r), r.after, 0) ? zero : found;
}

}  // namespace

UpdateModel UpdateModel::with_eps_of(const UpdateRows& all) const {
  return search_eps(some_of(all), [this](double e) {
    UpdateModel m = *this;
    m.eps = e;
    return m;
  });
}

std::optional<UpdateModel> fit_update(const UpdateRows& all, double tolerance) {
  const UpdateRows r = some_of(all);
  Best<UpdateModel> best{.left = tolerance};
  for (const UpdateModel& m :
       {with_both({.adam = false}, r), search_eps(r, [&r](double e) { return with_both({.eps = e}, r); })})
    best.offer(m, off_by(m.of(all), all.after, 0));
  return best.model;
}

}  // namespace isonorm::equivalence
