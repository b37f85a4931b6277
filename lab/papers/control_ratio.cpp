#include "lab/papers/control_ratio.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/formulas/philox.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

constexpr size_t kRuns = std::tuple_size_v<DrawnProof>;

// much - little, at least 0; infinite if either is NaN.
double beyond(double much, double little) {
  const double rest = much - little;
  return rest <= 0 ? 0 : rest > 0 ? rest : INFINITY;
}

// `count` different numbers below n.
std::vector<size_t> distinct(size_t count, size_t n, uint64_t seed, uint64_t stream) {
  std::vector<size_t> drawn;
  for (uint64_t i = 0; drawn.size() < count; ++i) {
    const size_t next = philox(seed, i, stream).wide(0) % n;
    if (std::find(drawn.begin(), drawn.end(), next) == drawn.end()) drawn.push_back(next);
  }
  return drawn;
}

}  // namespace

double bound_floor(DType dtype) { return bound(0, dtype) / epsilon(dtype); }
double bound_factor(DType dtype) { return bound(1, dtype) - bound(0, dtype); }

Needed needed(const Deviations& run, const Deviations& control, DType dtype) {
  const double floor = bound(0, dtype);
  Needed n;
  for (const Quantity& q : kQuantities) {
    const std::vector<double>&values = run.*q.path, &controls = control.*q.path;
    check(values.size() == controls.size(), "needed: a run of ", values.size(), " steps, controls of ",
          controls.size());
    for (size_t t = 0; t < values.size(); ++t) {
      const double above_floor = beyond(values[t], floor),
                   above_controls = beyond(values[t], bound(controls[t], dtype) - floor);
      if (above_floor > 0) n.factor = std::max(n.factor, controls[t] > 0 ? above_floor / controls[t] : INFINITY);
      n.floor = std::max(n.floor, above_controls / epsilon(dtype));
    }
  }
  return n;
}

Needed worst(const DrawnProof& proof) {
  Needed w;
  for (const Needed& n : proof) w = {std::max(w.factor, n.factor), std::max(w.floor, n.floor)};
  return w;
}

std::vector<DrawnProof> drawn_proofs(std::span<const RunResult> paths, std::span<const RunResult> forms, int controls,
                                     int proofs, uint64_t seed, DType dtype) {
  const size_t wanted = static_cast<size_t>(controls) + (forms.empty() ? kRuns : 0), group = forms.size() / kRuns;
  check(controls > 0 && paths.size() >= wanted, "drawn_proofs: ", paths.size(), " paths for ", wanted, " of a proof");
  check(forms.size() % kRuns == 0, "drawn_proofs: ", forms.size(), " paths of forms, expected three groups");
  std::vector<DrawnProof> result(static_cast<size_t>(proofs));
  for (size_t i = 0; i < result.size(); ++i) {
    const std::vector<size_t> drawn = distinct(wanted, paths.size(), seed, 2 * i);
    std::vector<RunResult> beside;
    for (int c = 0; c < controls; ++c)
      beside.emplace_back().deviations = paths[drawn[static_cast<size_t>(c)]].deviations;
    const Deviations most = running_maximum(beside);
    for (size_t r = 0; r < kRuns; ++r) {
      const RunResult& run = forms.empty() ? paths[drawn[static_cast<size_t>(controls) + r]]
                                           : forms[r * group + distinct(1, group, seed + r, 2 * i + 1)[0]];
      result[i][r] = needed(run.deviations, most, dtype);
    }
  }
  return result;
}

double Tail::rate(double x) const { return x <= threshold ? share : share * std::pow(x / threshold, -exponent); }

double Tail::value(double rate) const { return threshold * std::pow(std::min(1.0, rate / share), -1 / exponent); }

std::optional<Tail> fit_tail(std::vector<double> sample, double share) {
  const auto k = static_cast<size_t>(share * static_cast<double>(sample.size()));
  check(k >= 2 && k < sample.size(), "fit_tail: a share of ", share, " of ", sample.size(), " values are ", k,
        ", expected at least 2, and one that is left");
  std::nth_element(sample.begin(), sample.begin() + static_cast<ptrdiff_t>(k), sample.end(), std::greater<>());
  const double threshold = sample[k];
  if (!(threshold > 0)) return {};
  double logarithms = 0;
  for (size_t i = 0; i < k; ++i) logarithms += std::log(sample[i] / threshold);
  if (logarithms == 0) return {};
  return Tail{share, threshold, static_cast<double>(k) / logarithms};
}

double exceeded_by(std::vector<double> sample, double rate) {
  check(!sample.empty(), "exceeded_by: an empty sample");
  const size_t at = std::min(sample.size() - 1, static_cast<size_t>(rate * static_cast<double>(sample.size())));
  std::nth_element(sample.begin(), sample.begin() + static_cast<ptrdiff_t>(at), sample.end(), std::greater<>());
  return sample[at];
}

double part_above(const std::vector<double>& sample, double x) {
  return static_cast<double>(std::count_if(sample.begin(), sample.end(), [&](double v) { return v > x; })) /
         static_cast<double>(sample.size());
}

}  // namespace isonorm::equivalence
