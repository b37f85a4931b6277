// Step 1: the formula. Each of its lines is a loop over all rows, in f64 and in the order of the formula.
//
// It is easy to check, and slow in two ways: each loop fetches all rows from memory again, because the first rows have
// left the caches when a loop reaches the last ones; and each sum is a chain of additions that wait for one another.
#include <cmath>
#include <vector>

#include "examples/workshop/steps.h"

namespace isonorm::workshop::formula {

void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const double d = static_cast<double>(w);
  const float *x = in.x.data<float>(), *gain = in.gain.data<float>(), *bias = in.bias.data<float>();
  float *y = out.y.mutable_data<float>(), *stats = out.stats.mutable_data<float>();

  std::vector<double> mean(rows), squares(rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) mean[r] += x[r * w + i] / d;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) squares[r] += (x[r * w + i] - mean[r]) * (x[r * w + i] - mean[r]);
  for (int64_t r = 0; r < rows; ++r) {
    const double root = std::sqrt(squares[r] / d + spec.eps);
    for (int64_t i = 0; i < w; ++i)
      y[r * w + i] = static_cast<float>((x[r * w + i] - mean[r]) / root * gain[i] + bias[i]);
    stats[2 * r] = static_cast<float>(mean[r]);
    stats[2 * r + 1] = static_cast<float>(1 / root);
  }
}

void backward(const NormSpec&, const NormGradients& out, const NormSaved& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const double d = static_cast<double>(w);
  const float *x = in.x.data<float>(), *dy = in.dy.data<float>(), *stats = in.stats.data<float>();
  const float* gain = in.gain.data<float>();
  float* dx = out.dx.mutable_data<float>();
  float *dgain = out.dgain.mutable_data<float>(), *dbias = out.dbias.mutable_data<float>();
  const auto normalized = [&](int64_t r, int64_t i) {
    return (double{x[r * w + i]} - stats[2 * r]) * stats[2 * r + 1];
  };
  const auto h = [&](int64_t r, int64_t i) { return double{dy[r * w + i]} * gain[i]; };

  std::vector<double> mean_h(rows), mean_hx(rows), sum_gain(w), sum_bias(w);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) mean_h[r] += h(r, i) / d;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) mean_hx[r] += h(r, i) * normalized(r, i) / d;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i)
      dx[r * w + i] = static_cast<float>((h(r, i) - mean_h[r] - normalized(r, i) * mean_hx[r]) * stats[2 * r + 1]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) sum_gain[i] += dy[r * w + i] * normalized(r, i);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < w; ++i) sum_bias[i] += dy[r * w + i];
  for (int64_t i = 0; i < w; ++i) {
    dgain[i] = static_cast<float>(sum_gain[i]);
    dbias[i] = static_cast<float>(sum_bias[i]);
  }
}

}  // namespace isonorm::workshop::formula
