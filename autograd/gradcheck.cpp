#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "autograd/difference_probe.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "core/view.h"

namespace isonorm {
namespace {

using detail::DifferenceProbe;

// NaN is the worst error of all.
double rank_of(double error) { return std::isnan(error) ? HUGE_VAL : error; }

double deviation(const double* x, int64_t n) {
  double mean = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return std::sqrt(sum / static_cast<double>(n));
}

// A power of two near `step` times the spread around entry i: adding it to x rounds as little as possible.
double step_at(const std::vector<double>& x, int64_t i, int64_t row, double step) {
  double spread = deviation(x.data() + i / row * row, row);
  if (!(spread > 0)) spread = deviation(x.data(), static_cast<int64_t>(x.size()));
  if (!(spread > 0)) spread = x[i] == 0 ? 1 : std::min(1.0, std::abs(x[i]));
  return std::exp2(std::round(std::log2(step * spread)));
}

Dims index_of(int64_t i, const Dims& shape) {
  Dims index = shape;
  for (int d = shape.rank - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

TensorsFunction as_list(const TensorFunction& f) {
  return [&f](const std::vector<Tensor>& x) { return std::vector<Tensor>{f(x)}; };
}

// One entry of an input, its gradient and its slope.
struct Entry {
  size_t input, leaf;  // its number among all inputs, and among the f64 inputs
  int64_t place;
  double step, analytic;
  DifferenceProbe::Slope slope;

  double numeric() const { return slope.total(); }
  double size() const { return std::max(rank_of(std::abs(analytic)), rank_of(std::abs(numeric()))); }
  double error() const { return std::abs(analytic - numeric()); }
};

// The explanation of an entry's error; "" if there is none.
std::string note_on(const DifferenceProbe& f, const Entry& e, double noise) {
  if (e.slope.outside)
    return text("a step of ", 2 * e.step, " from ", f.at(e.input)[static_cast<size_t>(e.place)],
                " leaves the domain of the function: take a smaller `step`, or another point");
  if (!std::isfinite(e.error())) return {};
  for (const double h : {e.step * 0x1p-4, e.step * 0x1p-8, e.step * 0x1p-12, e.step * 0x1p-16}) {
    if (noise * e.step / h > e.error() / 16) break;  // at smaller steps rounding decides
    if (const double s = f.central(e.input, e.place, h).total(); std::abs(e.analytic - s) <= e.error() / 16)
      return text("with a step of ", h, " the numeric gradient is ", s,
                  ": a kink or a tie may lie within the step, or the function is steep; take a smaller `step`, or "
                  "another point");
  }
  // The slopes of a smooth function to the left and to the right differ by h f''.
  const double h = e.step * 0x1p-8;
  const auto [left, right] = f.one_sided(e.input, e.place, h);
  const auto [far_left, far_right] = f.one_sided(e.input, e.place, e.step);
  const double jump = std::abs(right - left);
  if (jump > e.error() / 8 && jump > std::abs(far_right - far_left) / 2 && jump > 16 * noise * e.step / h)
    return text("the slope is ", left, " to the left and ", right,
                " to the right: the point may be a kink or a tie; take another one");
  if (e.error() <= 16 * noise)
    return text("rounding of the function alone may be worth ", noise, ": its values are large against its gradient");
  return {};
}

}  // namespace

std::string GradcheckResult::message() const {
  if (input < 0) return text("gradcheck: ", ok ? "" : "nothing was measured: ", note);
  return text("gradcheck: ", output >= 0 ? text("output ", output, ", ") : "", "input ", input, " at ", index,
              ": analytic ", analytic, ", numeric ", numeric, ", relative error ", error, " (", entries,
              " entries compared)", note.empty() ? "" : "; ", note);
}

GradcheckResult gradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  check(o.step > 0 && std::isfinite(o.step), "gradcheck: step is ", o.step, ", expected a finite number above 0");
  check(o.tolerance >= 0 && o.absolute >= 0, "gradcheck: tolerance is ", o.tolerance, " and absolute ", o.absolute,
        ", expected numbers from 0");
  DifferenceProbe probe(f, inputs, o.seed);
  const std::vector<Tensor>& x = probe.inputs();
  const DifferenceProbe::Values gradients = probe.gradients();
  const auto noise = [&](const Entry& e) { return std::max(o.absolute, 4 * 0x1p-52 * e.slope.size / e.step); };
  const auto rank = [&](const Entry& e) { return o.zero ? e.size() : rank_of(e.error()); };

  GradcheckResult result;
  std::optional<Entry> worst;
  bool right = true;
  double worst_rank = 0, largest_zero = 0;
  std::string zeros;  // the inputs whose gradient is zero
  for (size_t k = 0, leaf = 0; k < x.size(); ++k) {
    if (x[k].dtype() != DType::f64) continue;
    const int64_t row = x[k].rank() ? std::max<int64_t>(1, x[k].size(-1)) : 1;
    std::vector<Entry> entries;
    double largest = 0;
    for (int64_t i = 0; i < x[k].numel(); ++i) {
      const double h = step_at(probe.at(k), i, row, o.step);
      entries.push_back({k, leaf, i, h, gradients[leaf][static_cast<size_t>(i)], probe.central(k, i, h)});
      if (const double size = entries.back().size(); std::isfinite(size)) largest = std::max(largest, size);
    }
    ++leaf;
    result.entries += x[k].numel();
    if (std::all_of(entries.begin(), entries.end(), [&](const Entry& e) { return e.size() <= noise(e); })) {
      largest_zero = std::max(largest_zero, largest);
      if (!entries.empty()) zeros += text(zeros.empty() ? "" : ", ", k);
      continue;
    }
    for (Entry& e : entries) {
      const double error = e.error() / largest;
      right &= !o.zero && error <= o.tolerance;  // false for NaN
      if (worst && rank(e) / largest <= worst_rank) continue;
      worst_rank = rank(e) / largest;
      result.error = error;
      worst = std::move(e);
    }
  }

  if (!worst) {
    result.ok = o.zero;
    result.note = result.entries == 0 ? "no input of f64 has an entry"
                  : !probe.has_outputs()
                      ? "no output of f64 has an entry"
                      : text("all ", result.entries, " entries of the gradients are zero (at most ", largest_zero, ')',
                             largest_zero > std::max(o.absolute, 1e-6)
                                 ? "; differences resolve no less, since the function's values are large: scale it or "
                                   "take off a constant"
                             : o.zero ? ""
                                      : "; if that is right, say {.zero = true}");
    return result;
  }
  result.status = right ? GradcheckStatus::right : GradcheckStatus::wrong;
  result.ok = right;
  result.input = static_cast<int>(worst->input);
  result.index = index_of(worst->place, x[worst->input].shape());
  result.analytic = worst->analytic;
  result.numeric = worst->numeric();
  if (right) {
    if (!zeros.empty()) result.note = "zero is the gradient of input " + zeros;
    return result;
  }
  result.note = o.zero ? "expected zeros (GradcheckOptions::zero)" : note_on(probe, *worst, noise(*worst));
  double most = -1;
  for (size_t j = 0; j < probe.outputs().size(); ++j) {
    Entry share = *worst;
    share.analytic = probe.gradients(j)[worst->leaf][static_cast<size_t>(worst->place)];
    share.slope.of = {worst->slope.of[j]};
    if (rank(share) > most) most = rank(share), result.output = probe.outputs()[j];
  }
  return result;
}

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  return gradcheck(as_list(f), inputs, o);
}

GradcheckResult gradgradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  const auto n = static_cast<std::ptrdiff_t>(inputs.size());
  // The results that take a gradient.
  const auto recorded = [&](const std::vector<Tensor>& x) {
    const Recording recording;  // gradcheck() evaluates under NoGrad
    std::vector<Tensor> y = f({x.begin(), x.begin() + n});
    std::erase_if(y, [](const Tensor& t) { return !detail::is_f64(t, "output") || !requires_grad(t); });
    return y;
  };
  std::vector<Tensor> all;
  for (const Tensor& x : inputs) all.push_back(detail::is_f64(x, "input") ? require_grad(detached::clone(x)) : x);
  std::mt19937_64 random(o.seed + 1);
  for (const Tensor& y : recorded(all))
    all.push_back(
        to(from_vector(detail::draw_cotangent(static_cast<size_t>(y.numel()), random), y.shape()), y.device()));
  return gradcheck(
      [&](const std::vector<Tensor>& x) {
        const Recording recording;
        std::vector<Tensor> leaves;
        std::copy_if(x.begin(), x.begin() + n, std::back_inserter(leaves),
                     [](const Tensor& t) { return is_floating(t.dtype()); });
        return grad(recorded(x), leaves, std::vector<Tensor>(x.begin() + n, x.end()), {.create_graph = true});
      },
      all, o);
}

GradcheckResult gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  return gradgradcheck(as_list(f), inputs, o);
}

}  // namespace isonorm
