// Internal: bounds for measured numbers (equal: below one bound; different: above another), and confidence intervals of
// mean differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/printed.h"
#include "reports/text_table.h"

namespace isonorm::papers {

class Margin {
 public:
  Margin(double same, double different) : same_(same), different_(different) {}

  // Records a number. Returns Tone::bad if it lies on the wrong side of its bound; NaN always does.
  reports::Tone take(double measured, bool same) {
    double& extreme = same ? largest_ : smallest_;
    if (same ? !(measured <= extreme) : !(measured >= extreme)) extreme = measured;
    const bool ok = same ? measured <= same_ : measured >= different_;
    kept_ = kept_ && ok;
    return ok ? reports::Tone::plain : reports::Tone::bad;
  }

  bool kept() const { return kept_; }  // true if all numbers so far lay on the right side
  double largest_same() const { return largest_; }
  double smallest_different() const { return smallest_; }

  std::string refuted() const {
    return text("one deviation above ", scientific(same_), " if the outputs should agree, or below ",
                scientific(different_), " if they should differ");
  }

 private:
  double same_, different_;
  double largest_ = 0, smallest_ = INFINITY;
  bool kept_ = true;
};

// A mean difference, and the half-width of its 95 % confidence interval.
struct Difference {
  double mean = 0, half = 0;
};
constexpr int kPairs = 4;

// Paired differences x[i] - y[i] of 3 or kPairs values each; interval by Student's t. Throws for another number of
// values.
inline Difference paired_difference(const std::vector<double>& x, const std::vector<double>& y) {
  const size_t n = x.size();
  check(n == y.size() && (n == 3 || n == kPairs), "paired_difference: ", n, " and ", y.size(),
        " numbers, expected 3 or ", kPairs, " of each");
  const double student = n == 3 ? 4.302653 : 3.182446, count = static_cast<double>(n);
  Difference d;
  double squares = 0;
  for (size_t i = 0; i < n; ++i) d.mean += (x[i] - y[i]) / count;
  for (size_t i = 0; i < n; ++i) squares += (x[i] - y[i] - d.mean) * (x[i] - y[i] - d.mean);
  d.half = student * std::sqrt(squares / (count - 1) / count);
  return d;
}

}  // namespace isonorm::papers
