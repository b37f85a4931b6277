#include "examples/workshop/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isonorm::workshop {
namespace {

void set_tolerance(ExpectedValues& e, int64_t terms, double largest) {
  for (const double v : e.value) largest = std::max(largest, std::abs(v));
  e.tolerance = 4 * std::numeric_limits<float>::epsilon() * std::sqrt(static_cast<double>(terms)) * largest;
}

}  // namespace

Reference reference(const NormSpec& spec, const kernels::NormInputs& in, const Tensor& cotangent) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const double d = static_cast<double>(w);
  const std::vector<double> all_x = in.x.to_vector<double>(), all_dy = cotangent.to_vector<double>();
  const std::vector<double> gain = in.gain.to_vector<double>(), bias = in.bias.to_vector<double>();
  Reference e{{std::vector<double>(rows * w)},
              {std::vector<double>(rows * w)},
              {std::vector<double>(w)},
              {std::vector<double>(w)}};
  double y_term = 0, dx_term = 0, dgain_term = 0, dbias_term = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double *x = all_x.data() + r * w, *dy = all_dy.data() + r * w;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < w; ++i) mean += x[i] / d;
    for (int64_t i = 0; i < w; ++i) variance += (x[i] - mean) * (x[i] - mean) / d;
    const double root = std::sqrt(variance + spec.eps);

    // The chain rule, as in Ioffe & Szegedy (1502.03167, section 3), with a row in place of the batch.
    double dvariance = 0, dmean = 0, centred = 0;
    for (int64_t i = 0; i < w; ++i) {
      const double h = dy[i] * gain[i];
      dvariance += h * (x[i] - mean) * -0.5 / (root * root * root);
      dmean -= h / root;
      centred += x[i] - mean;
    }
    dmean -= dvariance * 2 * centred / d;
    // x^ contains the difference of x and mean, so its error is relative to `spread`; dx contains it times h, and times
    // x^ mean(h).
    double spread = 0, largest_h = 0, sum_h = 0, largest = 1;
    for (int64_t i = 0; i < w; ++i) {
      const double normalized = (x[i] - mean) / root, h = dy[i] * gain[i];
      e.y.value[r * w + i] = normalized * gain[i] + bias[i];
      e.dx.value[r * w + i] = h / root + dvariance * 2 * (x[i] - mean) / d + dmean / d;
      e.dgain.value[i] += dy[i] * normalized;
      e.dbias.value[i] += dy[i];
      const double terms = (std::abs(x[i]) + std::abs(mean)) / root;
      y_term = std::max(y_term, terms * std::abs(gain[i]) + std::abs(bias[i]));
      dgain_term = std::max(dgain_term, terms * std::abs(dy[i]));
      dbias_term = std::max(dbias_term, std::abs(dy[i]));
      spread = std::max(spread, terms);
      largest = std::max(largest, std::abs(normalized));
      largest_h = std::max(largest_h, std::abs(h));
      sum_h += std::abs(h);
    }
    dx_term = std::max(dx_term, (largest_h + spread * largest * sum_h / d) / root);
  }
  set_tolerance(e.y, w, y_term);
  set_tolerance(e.dx, w, dx_term);
  set_tolerance(e.dgain, rows + w, dgain_term);
  set_tolerance(e.dbias, rows, dbias_term);
  return e;
}

}  // namespace isonorm::workshop
