#include "labs/3_layer_norm.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace isonorm;

namespace course {

// Loops over plain numbers: to_vector<double>() gives the entries row by row, from_vector() makes a tensor from them.
Tensor layer_norm_forward(const Tensor& x, const NormWeights& w) {
  // solution: for each row: the mean, then the mean of squared deviations, then y. Not E[x^2] - E[x]^2: why?
  const std::vector<double> in = x.to_vector<double>(), gain = w.gain.to_vector<double>(),
                            bias = w.bias.to_vector<double>();
  const size_t n = gain.size();
  std::vector<double> y(in.size());
  for (size_t r = 0; r < in.size(); r += n) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; ++i) mean += in[r + i];
    mean /= static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) square += (in[r + i] - mean) * (in[r + i] - mean);
    const double s = 1 / std::sqrt(square / static_cast<double>(n) + w.eps);
    for (size_t i = 0; i < n; ++i) y[r + i] = (in[r + i] - mean) * s * gain[i] + bias[i];
  }
  return from_vector(y, x.shape());
  // end
}

NormGradients layer_norm_backward(const Tensor& x, const NormWeights& w, const Tensor& dy) {
  // solution: the three gradients of layer_norm_forward; dgain and dbias are sums over all rows
  const std::vector<double> in = x.to_vector<double>(), gain = w.gain.to_vector<double>(), d = dy.to_vector<double>();
  const size_t n = gain.size();
  const auto width = static_cast<double>(n);
  std::vector<double> dx(in.size()), dgain(n), dbias(n);
  for (size_t r = 0; r < in.size(); r += n) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; ++i) mean += in[r + i] / width;
    for (size_t i = 0; i < n; ++i) square += (in[r + i] - mean) * (in[r + i] - mean) / width;
    const double s = 1 / std::sqrt(square + w.eps);
    double mean_h = 0, mean_hx = 0;
    for (size_t i = 0; i < n; ++i) {
      const double h = d[r + i] * gain[i], hat = (in[r + i] - mean) * s;
      mean_h += h / width;
      mean_hx += h * hat / width;
      dgain[i] += d[r + i] * hat;
      dbias[i] += d[r + i];
    }
    for (size_t i = 0; i < n; ++i) dx[r + i] = s * (d[r + i] * gain[i] - mean_h - (in[r + i] - mean) * s * mean_hx);
  }
  const Dims row{static_cast<int64_t>(n)};
  return {from_vector(dx, x.shape()), from_vector(dgain, row), from_vector(dbias, row)};
  // end
}

bool accepts_layer_norm(const NormUnderTest& norm) {
  // solution: compare with a right norm, for inputs that expose wrong ones; return false at the first difference
  const auto largest = [](const Tensor& t) { return t.abs().amax().item(); };
  const auto close = [&](const Tensor& got, const Tensor& expected, double tolerance) {
    return got.defined() && got.shape() == expected.shape() && isfinite(got).to(DType::f64).amin().item() == 1 &&
           largest(got - expected) <= tolerance * std::max(1., largest(expected));
  };
  manual_seed(3);
  const TensorOptions f64{.dtype = DType::f64};
  struct Case {
    Dims shape;
    double centre, scale, eps;
    bool transposed = false;
  };
  // Rows with one entry, with an odd and an even number of entries, and longer than a SIMD vector; one row and many
  // rows; three dimensions; a mean that hides the differences; small entries; an eps that matters; a transposed x.
  for (const Case& c :
       {Case{{4, 1}, 0, 1, 1e-5}, Case{{1, 2}, 0, 1, 1e-5}, Case{{5, 7}, 0.5, 1, 1e-5}, Case{{3, 8}, -1, 2, 0.3},
        Case{{2, 3, 33}, 0, 1, 1e-3}, Case{{21, 48}, 0, 1, 1e-5}, Case{{3, 6}, 1e6, 1, 1e-5},
        Case{{3, 5}, 0, 1e-3, 1e-5}, Case{{2, 6}, 0, 1, 1e-12}, Case{{6, 9}, 0, 1, 1e-5, true}})
    for (int call = 0; call < 2; ++call) {  // the second call must not depend on the first
      const auto drawn = [&] {
        return c.transposed ? randn({c.shape[1], c.shape[0]}, f64).transpose(0, 1) : randn(c.shape, f64);
      };
      const Tensor x = drawn(), dy = drawn(), other = drawn();
      copy_into(x, x * c.scale + c.centre);
      if (x.size(0) > 1) x[0] = c.centre;  // a constant row
      const Dims row{x.size(-1)};
      const NormWeights w{randn(row, f64), randn(row, f64), c.eps};
      if (row[0] > 2) w.gain[0] = 0;
      const Tensor x0 = x.clone(), dy0 = dy.clone(), gain0 = w.gain.clone(), bias0 = w.bias.clone();
      const Tensor y = norm.forward(x, w);
      norm.forward(other, w);  // backward must still use x
      const NormGradients got = norm.backward(x, w, dy), expected = layer_norm_backward(x0, w, dy0);
      for (const auto& [now, before] :
           {std::pair{x, x0}, std::pair{dy, dy0}, std::pair{w.gain, gain0}, std::pair{w.bias, bias0}})
        if (largest(now - before) != 0) return false;
      const double tolerance = 1e-12 * (1 + std::abs(c.centre));
      if (!close(y, layer_norm_forward(x, w), tolerance)) return false;
      if (!close(got.x, expected.x, tolerance)) return false;
      if (!close(got.gain, expected.gain, tolerance) || !close(got.bias, expected.bias, tolerance)) return false;
    }
  return true;
  // naive: one random [4, 6] input, y and gradients
  const TensorOptions options{.dtype = DType::f64};
  const Tensor x = randn({4, 6}, options), dy = randn({4, 6}, options);
  const NormWeights w{randn({6}, options), randn({6}, options), 1e-5};
  const NormGradients got = norm.backward(x, w, dy), expected = layer_norm_backward(x, w, dy);
  const auto same = [](const Tensor& a, const Tensor& b) { return (a - b).abs().amax().item() < 1e-10; };
  return same(norm.forward(x, w), layer_norm_forward(x, w)) && same(got.x, expected.x) &&
         same(got.gain, expected.gain) && same(got.bias, expected.bias);
  // naive: the loss is the sum of y, its gradient against finite differences
  // Both gradients are 0 for most norms.
  const Tensor x = randn({4, 8}, {.dtype = DType::f64}), one = ones({8}, {.dtype = DType::f64});
  const NormWeights w{one, one * 0.0, 1e-5};
  const Tensor dx = norm.backward(x, w, ones_like(x)).x;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Tensor up = x.clone().view({-1}), down = x.clone().view({-1});
    up[i] = x.view({-1})[i].item() + 1e-5;
    down[i] = x.view({-1})[i].item() - 1e-5;
    const double slope =
        (norm.forward(up.view({4, 8}), w).sum().item() - norm.forward(down.view({4, 8}), w).sum().item()) / 2e-5;
    if (std::abs(slope - dx.view({-1})[i].item()) > 1e-6) return false;
  }
  return true;
  // end
}

}  // namespace course
