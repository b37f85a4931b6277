// Judges the errors at random points.
#include "lab/probes/point_errors.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"

namespace isonorm::equivalence {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? NAN : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// Each error divided by its prediction, which counts as at least the median prediction.
std::vector<double> ratios(const std::vector<double>& errors, const std::vector<double>& predicted) {
  const double least = median(predicted);
  std::vector<double> out;
  for (size_t k = 0; k < errors.size(); ++k) out.push_back(std::abs(errors[k]) / std::max(predicted[k], least));
  return out;
}

bool finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// The reason why the numbers cannot be judged; empty if they can.
std::string unusable(const FormErrors& errors, int points, bool may_be_equal) {
  if (errors.empty() || points <= 0) return "there was nothing to compare";
  const size_t count = static_cast<size_t>(points);
  for (const TensorErrors& t : errors) {
    for (const auto* values : {&t.error, &t.predicted, &t.scale, &t.scale_predicted}) {
      if (values->size() != count) return text(t.name, " was compared at ", values->size(), " of ", points, " points");
      if (!finite(*values)) return text(t.name, " has an error that is not finite");
    }
    if (median(t.predicted) <= 0) return text(t.name, " has no predicted error");
  }
  if (may_be_equal) return "";
  const std::vector<double> largest = largest_errors(errors);
  const auto zero = std::find(largest.begin(), largest.end(), 0);
  if (zero != largest.end())
    return text("at point ", zero - largest.begin() + 1, " all is equal to the last bit: it was compared with itself");
  return "";
}

// The reason to refuse gradients whose activations were kept in bf16; empty if there is none.
std::string kept_too_far(const PointErrors& e, int points) {
  if (e.dtype != DType::f32 || e.looked != Looked::gradients) return "";
  const size_t count = static_cast<size_t>(points);
  const std::vector<double>& own = e.kept[0];
  if (own.size() != count || !finite(own) || !(median(own) > 0)) return "Pre-LN itself was not compared";
  for (size_t f = 1; f < kPointFormCount; ++f) {
    const std::vector<double>& mine = e.kept[f];
    const char* form = name_of_form(f);
    if (mine.size() != count || !finite(mine)) return text(form, " was not compared at ", points, " points");
    if (!(median(mine) > 0)) return text(form, " is equal to the last bit: it was compared with itself");
    const std::vector<double> times = ratios(mine, own);
    const double middle = median(times), largest = *std::max_element(times.begin(), times.end());
    if (!(middle <= kMedianLimit && largest <= kLargestLimit))
      return text(form,
                  printed(" has a median error of %.3g and a largest of %.3g times Pre-LN's own", middle, largest));
  }
  return "";
}

}  // namespace

PointVerdict judge(const FormErrors& errors, int points, DType dtype, bool may_be_equal) {
  PointVerdict v;
  v.reason = unusable(errors, points, may_be_equal);
  if (!v.reason.empty()) {
    v.median.value = v.largest.value = v.scale.value = NAN;
    return v;
  }
  v.least_seen = INFINITY;
  for (const TensorErrors& t : errors) {
    const std::vector<double> of_entries = ratios(t.error, t.predicted);
    v.median.take(median(of_entries), t.name);
    v.largest.take(*std::max_element(of_entries.begin(), of_entries.end()), t.name);
    const double typical = median(t.scale_predicted);
    if (typical == 0) continue;  // key biases: the reference is 0
    double mean = 0, seen = 0;
    for (size_t k = 0; k < t.scale.size(); ++k) {
      const double predicted = std::max(t.scale_predicted[k], typical);
      mean += t.scale[k] / predicted / points;
      seen += 1 / predicted / points;
    }
    v.scale.take(std::abs(mean), t.name);
    // The factor at which the mean of factor / prediction is twice the limit: then it is refused whatever sign the
    // errors have.
    const double factor = 2 * kScaleLimit * epsilon(dtype) / seen;
    v.least_seen = std::min(v.least_seen, factor);
    v.always_seen = std::max(v.always_seen, factor);
  }
  const auto say = [&](const char* what, const Extreme& e, double limit) {
    if (!(e.value <= limit) && v.reason.empty())
      v.reason =
          text(e.of, ": ", what, printed(" %.3g", e.value), " times what rounding does, at most ", limit, " expected");
  };
  say("the median error is", v.median, kMedianLimit);
  say("the largest error is", v.largest, kLargestLimit);
  say("the mean error of its scale is", v.scale, kScaleLimit);
  return v;
}

ArchitectureVerdict judge(const PointErrors& e, int points) {
  ArchitectureVerdict v;
  const auto refuse = [&](const char* what, const std::string& why) {
    if (v.reason.empty() && !why.empty()) v.reason = text(what, ": ", why);
  };
  for (size_t f = 0; f < kPointFormCount; ++f) {
    v.forms[f] = judge(e.forms[f], points, e.dtype, f == 0 && e.looked == Looked::logits);
    refuse(name_of_form(f), v.forms[f].reason);
  }
  refuse("activations kept in bf16", kept_too_far(e, points));
  if (!e.has_plain()) return v;
  v.plain = judge(e.plain, points, e.dtype);
  if (!(v.plain.median.value > kMedianLimit))
    refuse("plain RMSNorm", std::isnan(v.plain.median.value)
                                ? v.plain.reason
                                : printed("the median error is %.3g times what rounding does, more than %.3g expected",
                                          v.plain.median.value, kMedianLimit));
  return v;
}

std::vector<double> largest_errors(const FormErrors& errors) {
  std::vector<double> largest;
  for (const TensorErrors& t : errors)
    for (size_t k = 0; k < t.error.size(); ++k) {
      if (largest.size() <= k) largest.push_back(0);
      largest[k] = larger(largest[k], t.error[k]);
    }
  return largest;
}

}  // namespace isonorm::equivalence
