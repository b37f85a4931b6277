#include "equivalence/judge/criterion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/printed.h"

namespace isonorm::equivalence {
namespace {

constexpr double kControls = 30, kEps = 64;  // the bound: docs/equivalence.md gives the numbers' sources
constexpr double kLeastDifference = 1e-5;    // least deviation of a negative control, in each quantity

double largest(const std::vector<double>& values) {
  double m = 0;
  for (double v : values) m = larger(m, v);
  return m;
}

// The reason why deviations and controls cannot be compared; empty if they can.
std::string unusable(const Deviations& run, const Deviations& control) {
  const size_t steps = run.loss.size();
  if (steps == 0) return "the run is empty";
  for (const Quantity& q : kQuantities) {
    if ((run.*q.path).size() != steps) return text(q.name, " was not compared at every step");
    if ((control.*q.path).size() != steps)
      return text("the controls have ", (control.*q.path).size(), " steps, the run ", steps);
  }
  if (control.gradient.back() == 0 || control.weight.back() == 0) return "the controls never left the reference";
  return "";
}

// "; fc.weight[3, 4] is ..." if the run left the reference at this step in this quantity.
std::string where_it_left(const std::optional<Difference>& first, size_t step, const char* quantity) {
  const bool here = first && first->step == static_cast<int>(step) && std::string_view(first->quantity) == quantity;
  return here ? text("; ", first->place.tensor.empty() ? "it" : "", describe(first->place)) : "";
}

// The verdict, and the sentence that explains it.
std::pair<Verdict, std::string> compare(const RunResult& result, DType dtype) {
  const Deviations &run = result.deviations, &control = result.control;
  // In chaos, if a bound is above `reach` or above 1, breaking it shows nothing.
  const auto counts = [&](double limit, const Quantity& q) {
    return limit < std::max(largest_bound(dtype), std::min(result.reach.*q.size, 1.0));
  };
  const size_t steps = run.loss.size(), seen = static_cast<size_t>(result.horizon.steps);
  double share = 0;  // largest D(t) / bound(t) up to the horizon
  std::string where;
  for (size_t t = 0; t < steps; ++t)
    for (const Quantity& q : kQuantities) {
      const double d = (run.*q.path)[t], limit = bound((control.*q.path)[t], dtype);
      if (std::isnan(d) ? std::isfinite(limit) : d > limit && counts(limit, q))
        return {Verdict::different, text(q.name, " at step ", t + 1, ": ", scientific(d), ", the bound is ",
                                         scientific(limit), where_it_left(result.first_difference, t + 1, q.name))};
      if (t < seen && d / limit >= share) {
        share = d / limit;
        where = text(q.name, " at step ", t + 1);
      }
    }
  if (!carries(result.horizon, steps))
    return {Verdict::undecided, text(end_of(result.horizon), "; a verdict needs ",
                                     plural(std::min<size_t>(steps, kNegativeSteps), "step"), " before that")};
  return {Verdict::equivalent, text("at most ", std::ceil(100 * share), " % of the bound (", where, ")",
                                    seen < steps ? text(" up to step ", seen, " of ", steps) : "")};
}

// The reason why a negative control is not different enough; empty if it is.
std::string shortfall(const Deviations& run, const Deviations& control, DType dtype) {
  if (!(run.loss[0] <= start_tolerance(dtype)))
    return text("it did not start as the same function: loss deviates by ", scientific(run.loss[0]), " at step 1");
  for (const Quantity& q : kQuantities) {
    const std::vector<double>& values = run.*q.path;
    const bool crosses = q.path == &Deviations::loss;  // a single number may cross the reference's at any step
    const double d = crosses ? largest(values) : values.back();
    const double least = std::max(separation(dtype) * (control.*q.path).back(), kLeastDifference);
    if (!(d > least))
      return text("the deviation of ", q.spoken, " is ", crosses ? "at most " : "", scientific(d),
                  crosses ? "" : " after the last step", ", at least ", scientific(least), " expected");
  }
  return "";
}

// A run that is another function from the start: empty if it exceeds the bound by kLeastExcess.
std::string small_excess(const RunResult& run, DType dtype) {
  const double excess = share_of_bound(run.deviations, run.control, dtype);
  if (excess >= kLeastExcess) return "";
  return text("at most ", scientific(excess), " times the bound, at least ", kLeastExcess, " expected");
}

bool equal_to_the_last_bit(const Deviations& run) {
  const Magnitudes most = largest(run);
  return most.loss == 0 && most.gradient == 0 && most.weight == 0;
}

}  // namespace

Verdict RunResult::agreement() const {
  if (as_expected) return Verdict::equivalent;
  return verdict == expected ? Verdict::undecided : verdict == Verdict::undecided ? verdict : Verdict::different;
}

void check_wide_enough(int64_t width, const char* verb) {
  check(width >= 3, verb, ": the stream has width ", width,
        ", expected at least 3: a norm of two centred entries is 1 and ",
        "-1 for any entries, so gradients before it are rounding noise");
}

double largest_bound(NumberFormat format) { return format.dtype == DType::f64 ? 1e-5 : 1e-2; }

double bound(double control, NumberFormat format) { return kControls * control + kEps * epsilon(format); }

double share_of_bound(const Deviations& run, const Deviations& control, DType dtype) {
  double share = run.loss.empty() ? NAN : 0;
  for (const Quantity& q : kQuantities) {
    const std::vector<double>&values = run.*q.path, &limits = control.*q.path;
    if (values.size() != run.loss.size() || limits.size() != run.loss.size()) return NAN;
    for (size_t t = 0; t < values.size(); ++t) share = larger(share, values[t] / bound(limits[t], dtype));
  }
  return share;
}

Magnitudes reach(std::span<const RunResult> negative) {
  Magnitudes least;
  for (const Quantity& q : kQuantities)
    for (const RunResult& run : negative) {
      const std::vector<double>& values = run.deviations.*q.path;
      double most = 0;
      for (size_t t = 0; t < values.size() && t < kNegativeSteps && std::isfinite(values[t]); ++t)
        most = std::max(most, values[t]);
      least.*q.size = &run == negative.data() ? most : std::min(least.*q.size, most);
    }
  return least;
}

Horizon horizon(const Deviations& control, const Magnitudes& reach, DType dtype) {
  Horizon h;
  const size_t steps = std::min({control.loss.size(), control.gradient.size(), control.weight.size()});
  for (const Quantity& q : kQuantities) h.limit.*q.size = std::min(reach.*q.size / 3, largest_bound(dtype));
  for (size_t t = 0; t < steps && h.ended_by.empty(); ++t) {
    for (const Quantity& q : kQuantities) {
      const double c = (control.*q.path)[t];
      if (bound(c, dtype) < h.limit.*q.size) continue;
      h.ended_by = q.spoken;
      h.term = !std::isfinite(c)                 ? "the controls are not finite"
               : kControls * c > bound(0, dtype) ? "30 times the controls"
                                                 : "64 eps";
      break;
    }
    for (const Quantity& q : kQuantities)
      if (t == 0 || h.ended_by.empty()) h.detectable.*q.size = bound((control.*q.path)[t], dtype);
    if (h.ended_by.empty()) h.steps = static_cast<int>(t) + 1;
  }
  return h;
}

bool carries(const Horizon& h, size_t steps) {
  return h.steps > 0 && static_cast<size_t>(h.steps) >= std::min<size_t>(steps, kNegativeSteps);
}

std::string end_of(const Horizon& h) {
  if (h.ended_by.empty()) return "";
  const double Magnitudes::*size = nullptr;
  for (const Quantity& q : kQuantities)
    if (h.ended_by == q.spoken) size = q.size;
  const std::string from = text("from step ", h.steps + 1, " on ");
  if (!(h.limit.*size > 0)) return text(from, "no negative control moves ", h.ended_by);
  return text(from, "rounding alone moves ", h.ended_by, " by more than ", scientific(h.limit.*size), " (", h.term,
              ")");
}

std::string detectable_text(const Horizon& h) {
  return text("detectable up to step ", h.steps, ": ", scientific(h.detectable.loss), " in the loss, ",
              scientific(h.detectable.gradient), " in gradients, ", scientific(h.detectable.weight), " in weights");
}

double separation(DType dtype) { return dtype == DType::f64 ? 1e6 : 100; }

Magnitudes largest(const Deviations& run) { return {largest(run.loss), largest(run.gradient), largest(run.weight)}; }

double start_tolerance(DType dtype) { return dtype == DType::f64 ? 1e-12 : 16 * epsilon(dtype); }

Deviations running_maximum(std::span<const RunResult> controls) {
  Deviations result;
  if (controls.empty()) return result;
  for (const Quantity& q : kQuantities) {
    std::vector<double>& out = result.*q.path;
    out = controls[0].deviations.*q.path;
    for (const RunResult& control : controls) {
      const std::vector<double>& values = control.deviations.*q.path;
      if (values.size() != out.size()) return {};
      for (size_t t = 0; t < out.size(); ++t) out[t] = larger(out[t], values[t]);
    }
    for (size_t t = 1; t < out.size(); ++t) out[t] = larger(out[t - 1], out[t]);
  }
  return result;
}

void judge(RunResult& run, DType dtype) {
  run.largest = largest(run.deviations);
  run.verdict = Verdict::undecided;
  run.as_expected = false;
  run.horizon = horizon(run.control, run.reach, dtype);
  run.reason = unusable(run.deviations, run.control);
  if (!run.reason.empty()) return;
  std::tie(run.verdict, run.reason) = compare(run, dtype);
  if (run.verdict != run.expected) return;
  std::string objection;
  if (run.expected == Verdict::different)
    objection = run.same_start ? shortfall(run.deviations, run.control, dtype) : small_excess(run, dtype);
  else if (!run.may_be_identical && equal_to_the_last_bit(run.deviations))
    objection = "equal to the last bit at every step: it was compared with itself";
  run.as_expected = objection.empty();
  if (!objection.empty()) run.reason = objection;
}

Verdict judge(std::span<RunResult> runs, const Magnitudes& reach, DType dtype) {
  Verdict worst = runs.empty() ? Verdict::undecided : Verdict::equivalent;
  for (RunResult& run : runs) {
    run.reach = reach;
    judge(run, dtype);
    worst = std::max(worst, run.agreement());
  }
  return worst;
}

}  // namespace isonorm::equivalence
