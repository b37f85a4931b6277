// LayerNorms: three right ones, and faults that only this norm can have.
#include <cmath>

#include "hidden/support/candidates.h"

using namespace isonorm;

namespace course {
namespace {

Tensor mean_of(const Tensor& t) { return t.mean(-1, true); }
Tensor centred(const Tensor& x) { return x - mean_of(x); }
Tensor spread(const Tensor& c, double eps) { return (mean_of(c.square()) + eps).sqrt(); }
Tensor normalised(const Tensor& x, double eps) { return centred(x) / spread(centred(x), eps); }
Tensor one_pass(const Tensor& x, double eps) {
  return centred(x) / ((mean_of(x.square()) - mean_of(x).square()).clamp(0, 1e300) + eps).sqrt();
}

// Computed in long double, from the last entry to the first.
NormGradients backwards(const Tensor& x, const NormWeights& w, const Tensor& dy, Tensor& y) {
  using Real = long double;
  const auto in = x.to_vector<double>(), gain = w.gain.to_vector<double>(), bias = w.bias.to_vector<double>(),
             d = dy.to_vector<double>();
  const size_t n = gain.size();
  std::vector<double> out(in.size()), dx(in.size());
  std::vector<Real> dgain(n), dbias(n);
  for (size_t row = in.size() / n; row-- > 0;) {
    const double *a = &in[row * n], *b = &d[row * n];
    Real mean = 0, square = 0, h = 0, hx = 0;
    for (size_t i = n; i-- > 0;) mean += a[i];
    mean /= static_cast<Real>(n);
    for (size_t i = n; i-- > 0;) square += (a[i] - mean) * (a[i] - mean);
    const Real s = 1 / std::sqrt(square / static_cast<Real>(n) + static_cast<Real>(w.eps));
    for (size_t i = n; i-- > 0;) {
      const Real hat = (a[i] - mean) * s;
      out[row * n + i] = static_cast<double>(hat * gain[i] + bias[i]);
      h += static_cast<Real>(b[i]) * gain[i], hx += b[i] * gain[i] * hat;
      dgain[i] += b[i] * hat, dbias[i] += b[i];
    }
    for (size_t i = n; i-- > 0;)
      dx[row * n + i] = static_cast<double>(s * (static_cast<Real>(b[i]) * gain[i] - h / static_cast<Real>(n) -
                                                 (a[i] - mean) * s * hx / static_cast<Real>(n)));
  }
  y = from_vector(out, x.shape());
  const auto rounded = [&](const std::vector<Real>& v) {
    return from_vector(std::vector<double>(v.begin(), v.end()), w.gain.shape());
  };
  return {from_vector(dx, x.shape()), rounded(dgain), rounded(dbias)};
}

}  // namespace

Candidates right_layer_norms() {
  return {{"composed", affine(normalised)},
          {"fused", differentiated([](const Tensor& x, const NormWeights& w) {
             return layer_norm(x, w.gain, w.bias, {.eps = w.eps});
           })},
          {"long double, from the end",
           {[](const Tensor& x, const NormWeights& w) {
              Tensor y;
              backwards(x, w, x, y);
              return y;
            },
            [](const Tensor& x, const NormWeights& w, const Tensor& dy) {
              Tensor y;
              return backwards(x, w, dy, y);
            }}}};
}

Candidates wrong_layer_norms() {
  Candidates all = common_faults(normalised);
  const auto add = [&](const char* name, const Normalise& f) { all.push_back({name, affine(f)}); };
  add("eps is outside of the root",
      [](const Tensor& x, double eps) { return centred(x) / (spread(centred(x), 0) + eps); });
  add("the variance is the sample's", [](const Tensor& x, double eps) {
    const auto n = static_cast<double>(x.size(-1));
    return centred(x) / (mean_of(centred(x).square()) * (n / (n - 1)) + eps).sqrt();
  });
  add("no mean is subtracted: RMSNorm", [](const Tensor& x, double eps) { return x / spread(x, eps); });
  add("the variance is E[x^2] - E[x]^2", one_pass);
  add("a variance below 1e-4 counts as 1e-4", [](const Tensor& x, double eps) {
    return centred(x) / (mean_of(centred(x).square()).clamp(1e-4, 1e300) + eps).sqrt();
  });
  add("the mean is detached: the backward lacks mean h", [](const Tensor& x, double eps) {
    const Tensor c = x - mean_of(x).detach();
    return c / spread(c, eps);
  });
  add("the variance is detached",
      [](const Tensor& x, double eps) { return centred(x) / spread(centred(x), eps).detach(); });
  all.push_back({"dx takes E[x^2] - E[x]^2 for the variance", with_backward(normalised, affine(one_pass).backward)});
  return all;
}

}  // namespace course
