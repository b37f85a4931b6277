#include "support/naive_kernel.h"

#include <cmath>

#include <isonorm/core/system/parallel.h>

namespace course {

NaiveRmsNorm::NaiveRmsNorm(int64_t rows, int64_t n)
    : rows_(rows), n_(n), squares_(static_cast<size_t>(rows * n)), scales_(static_cast<size_t>(rows)) {}

void NaiveRmsNorm::operator()(const float* x, float* y, float eps) {
  float *squares = squares_.data(), *scales = scales_.data();
  isonorm::parallel_for(rows_ * n_, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[i] = x[i] * x[i];
  });
  isonorm::parallel_for(rows_, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      constexpr int64_t kLanes = 16;
      const float* row = squares + r * n_;
      float sums[kLanes] = {}, sum = 0;
      int64_t i = 0;
      for (; i + kLanes <= n_; i += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += row[i + lane];
      for (; i < n_; ++i) sum += row[i];
      for (float lane : sums) sum += lane;
      scales[r] = 1 / std::sqrt(sum / static_cast<float>(n_) + eps);
    }
  });
  isonorm::parallel_for(rows_, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t i = r * n_; i < (r + 1) * n_; ++i) y[i] = x[i] * scales[r];
  });
}

}  // namespace course
