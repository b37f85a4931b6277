#include "equivalence/criterion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "equivalence/pairs.h"
#include "equivalence/summary.h"

namespace isonorm::equivalence {
namespace {

constexpr double kLeastDifference = 1e-5;  // of a negative control, in each quantity

struct Quantity {
  const char* name;
  std::vector<double> Deviations::*values;
};
constexpr Quantity kQuantities[] = {
    {"loss", &Deviations::loss}, {"gradient", &Deviations::gradient}, {"weights", &Deviations::weight}};

double largest(const std::vector<double>& values) {
  double m = 0;
  for (double v : values) m = larger(m, v);
  return m;
}

// Why deviations and controls cannot be compared; empty where they can.
std::string unusable(const Deviations& run, const Deviations& control) {
  const size_t steps = run.loss.size();
  if (steps == 0) return "the run is empty";
  for (const Quantity& q : kQuantities) {
    if ((run.*q.values).size() != steps) return text(q.name, " was not compared at every step");
    if ((control.*q.values).size() != steps)
      return text("the controls have ", (control.*q.values).size(), " steps, the run ", steps);
  }
  for (const Quantity& q : kQuantities)
    if (!std::isfinite((control.*q.values).back())) return text("the controls' ", q.name, " is not finite");
  if (control.gradient.back() == 0 || control.weight.back() == 0) return "the controls never left the reference";
  return "";
}

// "; fc.weight[3, 4] is ..." where the run was seen to leave the reference at this step and quantity.
std::string where_it_left(const std::optional<Difference>& first, size_t step, const char* quantity) {
  const bool here = first && first->step == static_cast<int>(step) && std::string_view(first->quantity) == quantity;
  return here ? text("; ", first->place.tensor.empty() ? "it" : "", describe(first->place)) : "";
}

// The verdict `same` or `different`, and the sentence that explains it.
std::pair<Verdict, std::string> compare(const RunResult& result, DType dtype) {
  const Deviations &run = result.deviations, &control = result.control;
  double share = 0;  // largest D(t) / bound(t)
  std::string where;
  for (size_t t = 0; t < run.loss.size(); ++t)
    for (const Quantity& q : kQuantities) {
      const double d = (run.*q.values)[t], c = (control.*q.values)[t];
      if (!(d <= bound(c, dtype)))  // also where either is NaN
        return {Verdict::different,
                text(q.name, " at step ", t + 1, ": ", scientific(d), ", the bound is ", scientific(bound(c, dtype)),
                     where_it_left(result.first_difference, t + 1, q.name))};
      if (d / bound(c, dtype) >= share) {
        share = d / bound(c, dtype);
        where = text(q.name, " at step ", t + 1);
      }
    }
  return {Verdict::same, text("at most ", std::ceil(100 * share), " % of the bound (", where, ")")};
}

// What a negative control lacks; empty where it is as different as it must be.
std::string shortfall(const Deviations& run, const Deviations& control, DType dtype) {
  if (!(run.loss[0] <= start_tolerance(dtype)))
    return text("it did not start as the same function: loss deviates by ", scientific(run.loss[0]), " at step 1");
  for (const Quantity& q : kQuantities) {
    const std::vector<double>& values = run.*q.values;
    const bool crosses = q.values == &Deviations::loss;  // one number: it may pass the reference's at any step
    const double d = crosses ? largest(values) : values.back();
    const double least = std::max(separation(dtype) * (control.*q.values).back(), kLeastDifference);
    if (!(d > least))
      return text(q.name, " deviates by ", scientific(d), crosses ? " at most" : " after the last step", ", at least ",
                  scientific(least), " expected");
  }
  return "";
}

bool equal_to_the_last_bit(const Deviations& run) {
  return largest(run.loss) == 0 && largest(run.gradient) == 0 && largest(run.weight) == 0;
}

void fill_largest(RunResult& run) {
  run.loss_deviation = largest(run.deviations.loss);
  run.gradient_deviation = largest(run.deviations.gradient);
  run.weight_deviation = largest(run.deviations.weight);
}

}  // namespace

double bound(double control, DType dtype) { return 30 * control + 64 * epsilon(dtype); }

double share_of_bound(const Deviations& run, const Deviations& control, DType dtype) {
  double share = run.loss.empty() ? NAN : 0;
  for (const Quantity& q : kQuantities) {
    const std::vector<double>&values = run.*q.values, &limits = control.*q.values;
    if (values.size() != run.loss.size() || limits.size() != run.loss.size()) return NAN;
    for (size_t t = 0; t < values.size(); ++t) share = larger(share, values[t] / bound(limits[t], dtype));
  }
  return share;
}

double separation(DType dtype) { return dtype == DType::f64 ? 1e6 : 100; }

double start_tolerance(DType dtype) { return dtype == DType::f64 ? 1e-12 : 16 * epsilon(dtype); }

Deviations running_maximum(std::span<const RunResult> controls) {
  Deviations result;
  if (controls.empty()) return result;
  for (const Quantity& q : kQuantities) {
    std::vector<double>& out = result.*q.values;
    out = controls[0].deviations.*q.values;
    for (const RunResult& control : controls) {
      const std::vector<double>& values = control.deviations.*q.values;
      if (values.size() != out.size()) return {};
      for (size_t t = 0; t < out.size(); ++t) out[t] = larger(out[t], values[t]);
    }
    for (size_t t = 1; t < out.size(); ++t) out[t] = larger(out[t - 1], out[t]);
  }
  return result;
}

void judge(RunResult& run, DType dtype) {
  fill_largest(run);
  run.observed = Verdict::different;
  run.as_expected = false;
  run.reason = unusable(run.deviations, run.control);
  if (!run.reason.empty()) return;
  std::tie(run.observed, run.reason) = compare(run, dtype);
  if (run.observed != run.expected) return;
  std::string objection;
  if (run.expected == Verdict::different)
    objection = shortfall(run.deviations, run.control, dtype);
  else if (run.form != "layer_norm" && equal_to_the_last_bit(run.deviations))
    objection = "equal to the last bit at every step: it was compared with itself";
  run.as_expected = objection.empty();
  if (!objection.empty()) run.reason = objection;
}

void conclude(ProofResult& proof) {
  for (RunResult& control : proof.controls) fill_largest(control);
  proof.control = running_maximum(proof.controls);
  proof.control_loss = largest(proof.control.loss);
  proof.control_gradient = largest(proof.control.gradient);
  proof.control_weight = largest(proof.control.weight);
  proof.equivalent = !proof.runs.empty() && !proof.interrupted;
  for (RunResult& run : proof.runs) {
    if (run.control.loss.empty()) run.control = proof.control;
    judge(run, proof.options.dtype);
    proof.equivalent = proof.equivalent && run.as_expected;
  }
}

}  // namespace isonorm::equivalence
