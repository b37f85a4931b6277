// Comparison of tensors with a tolerance relative to the largest expected entry.
#pragma once

#include <cmath>

#include "core/tensor.h"
#include "tests/support/catch.h"

namespace isonorm {

// Largest |a - b| over all entries divided by the largest |b| (by 1 if b is 0). Infinite if there is a NaN.
inline double relative_deviation(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0, scale = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(x[i] - y[i]);
    worst = d <= worst ? worst : std::isnan(d) ? INFINITY : d;
    scale = std::max(scale, std::abs(y[i]));
  }
  return worst / (scale == 0 ? 1 : scale);
}

inline void check_close(const Tensor& a, const Tensor& b, double tolerance) {
  const double deviation = relative_deviation(a, b);
  INFO("relative deviation " << deviation << ", tolerance " << tolerance);
  CHECK(deviation <= tolerance);
}

// ||a - b|| / ||b|| over all entries of both lists.
inline double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k) difference += (x[k] - y[k]) * (x[k] - y[k]), size += y[k] * y[k];
  }
  return std::sqrt(difference / size);
}

}  // namespace isonorm
