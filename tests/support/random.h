// Random tensors for tests, not by the library's generator.
#pragma once

#include <random>
#include <vector>

#include "core/tensor.h"

namespace isonorm::test {

// Normal values with mean `shift` and standard deviation `scale`, converted to `dtype`.
inline Tensor randn(const Dims& shape, unsigned seed, double shift = 0, double scale = 1, DType dtype = DType::f64) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(shift, scale);
  std::vector<double> values(numel(shape));
  for (double& v : values) v = normal(engine);
  Tensor x = from_vector(values, shape);
  if (dtype == DType::f64) return x;
  Tensor y = empty(shape, {dtype});
  copy_into(y, x);
  return y;
}

// The largest difference of two tensors in f64; NaN if there is a NaN.
inline double max_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = x.size() == y.size() ? 0 : 1e300;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    const double d = std::abs(x[i] - y[i]);
    if (!(d <= largest) && !std::isnan(largest)) largest = d;  // keeps a NaN
  }
  return largest;
}

}  // namespace isonorm::test
