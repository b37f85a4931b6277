#include "labs/6_crms_norm.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace isonorm;

namespace course {

Tensor crms_norm_forward(const Tensor& v, const NormWeights& w) {
  // solution: the sums of v^2 and of v over the last dimension, kept as size 1, then the formula
  const auto d = static_cast<double>(v.size(-1) + 1);
  const Tensor r = ((v.square().sum(-1, true) + v.sum(-1, true).square()) / d + w.eps).sqrt();
  return v / r * w.gain + w.bias;
  // end
}

NormGradients crms_norm_backward(const Tensor& v, const NormWeights& w, const Tensor& dy) {
  // solution: the three gradients; sums over the rows are sums over dimension 0 of [rows, n]
  const auto d = static_cast<double>(v.size(-1) + 1);
  const Tensor s = v.sum(-1, true), r = ((v.square().sum(-1, true) + s.square()) / d + w.eps).sqrt();
  const Tensor h = dy * w.gain;
  const auto over_rows = [&](const Tensor& t) { return t.reshape({-1, v.size(-1)}).sum(0); };
  return {h / r - (v + s) * (h * v).sum(-1, true) / (r.pow(3) * d), over_rows(dy * v / r), over_rows(dy)};
  // end
}

Tensor writer_direction(const Tensor& db) {
  // solution: (D^T D)^-1 = I - 1 1^T / d acts on the d - 1 rows of db
  return db - db.sum(0, true) / static_cast<double>(db.size(0) + 1);
  // end
}

Tensor reader_direction(const Tensor& da) {
  // solution: D^T D = I + 1 1^T acts on the columns of da
  return da + da.sum(1, true);
  // end
}

bool accepts_crms_norm(const NormUnderTest& norm) {
  // solution: as in lab 3; which rows tell d from d - 1, and S^2 from nothing?
  const auto largest = [](const Tensor& t) { return t.abs().amax().item(); };
  const auto close = [&](const Tensor& got, const Tensor& expected) {
    return got.defined() && got.shape() == expected.shape() && isfinite(got).to(DType::f64).amin().item() == 1 &&
           largest(got - expected) <= 1e-11 * std::max(1., largest(expected));
  };
  manual_seed(6);
  const TensorOptions f64{.dtype = DType::f64};
  struct Case {
    Dims shape;
    double centre, eps;
    bool transposed = false;
  };
  for (const Case& c :
       {Case{{4, 1}, 1, 1e-5}, Case{{1, 2}, 0, 1e-5}, Case{{5, 7}, 0.5, 1e-5}, Case{{3, 8}, -1, 0.3},
        Case{{2, 3, 33}, 0, 1e-3}, Case{{21, 48}, 0, 1e-5}, Case{{2, 6}, 0, 1e-12}, Case{{6, 9}, 0, 1e-5, true}})
    for (int call = 0; call < 2; ++call) {
      const auto drawn = [&] {
        return c.transposed ? randn({c.shape[1], c.shape[0]}, f64).transpose(0, 1) : randn(c.shape, f64);
      };
      const Tensor x = drawn(), dy = drawn(), other = drawn();
      copy_into(x, x + c.centre);
      if (x.size(0) > 1) x[0] = c.eps == 0.3 ? 0. : 1.;  // a constant row, zero in one case
      const Dims row{x.size(-1)};
      const NormWeights w{randn(row, f64), randn(row, f64), c.eps};
      if (row[0] > 2) w.gain[0] = 0;
      const Tensor x0 = x.clone(), dy0 = dy.clone(), gain0 = w.gain.clone(), bias0 = w.bias.clone();
      const Tensor y = norm.forward(x, w);
      norm.forward(other, w);
      const NormGradients got = norm.backward(x, w, dy), expected = crms_norm_backward(x0, w, dy0);
      for (const auto& [now, before] :
           {std::pair{x, x0}, std::pair{dy, dy0}, std::pair{w.gain, gain0}, std::pair{w.bias, bias0}})
        if (largest(now - before) != 0) return false;
      if (!close(y, crms_norm_forward(x, w)) || !close(got.x, expected.x)) return false;
      if (!close(got.gain, expected.gain) || !close(got.bias, expected.bias)) return false;
    }
  return true;
  // naive: one random [4, 6] input, y and gradients
  const TensorOptions options{.dtype = DType::f64};
  const Tensor x = randn({4, 6}, options), dy = randn({4, 6}, options);
  const NormWeights w{randn({6}, options), randn({6}, options), 1e-5};
  const NormGradients got = norm.backward(x, w, dy), expected = crms_norm_backward(x, w, dy);
  const auto same = [](const Tensor& a, const Tensor& b) { return (a - b).abs().amax().item() < 1e-10; };
  return same(norm.forward(x, w), crms_norm_forward(x, w)) && same(got.x, expected.x) &&
         same(got.gain, expected.gain) && same(got.bias, expected.bias);
  // naive: rows of mean 0 with a gain of 1, the loss is the sum of y
  // What S does is 0 in them.
  const TensorOptions doubles{.dtype = DType::f64};
  const Tensor x = recentre(randn({4, 8}, doubles), 1), one = ones({8}, doubles), at = x.clone().require_grad();
  const Tensor y = crms_norm(at);
  const NormWeights w{one, one * 0.0, 1e-5};
  return (norm.forward(x, w) - y.detach()).abs().amax().item() < 1e-9 &&
         (norm.backward(x, w, ones_like(x)).x - isonorm::grad(y.sum(), {at})[0]).abs().amax().item() < 1e-9;
  // end
}

}  // namespace course
