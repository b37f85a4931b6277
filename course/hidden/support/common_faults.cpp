// Faults that any norm can have: in eps, in gain and bias, in which rows are seen, in what the backward sums.
#include "hidden/support/candidates.h"

using namespace isonorm;

namespace course {
namespace {

using Backward = decltype(NormUnderTest::backward);

// The gradient of <h, f(x)> by x.
Tensor back(const Normalise& f, const Tensor& x, double eps, const Tensor& h) {
  const Tensor at = x.clone().require_grad();
  return grad(f(at, eps), {at}, h)[0];
}
Tensor over_rows(const Tensor& t) { return t.reshape({-1, t.size(-1)}).sum(0); }
Tensor rows_of(const Tensor& t, int64_t begin, int64_t end) {
  return slice(t.reshape({-1, t.size(-1)}), 0, begin, end);
}

// The right gradients, changed by `change`.
template <class Change> Backward changed(const Normalise& f, Change change) {
  return [f, change](const Tensor& x, const NormWeights& w, const Tensor& dy) {
    NormGradients g = affine(f).backward(x, w, dy);
    change(g, x, w, dy);
    return g;
  };
}

Candidates wrong_forwards(const Normalise& f) {
  const auto with_eps = [f](std::function<double(double)> of) {
    return affine([f, of](const Tensor& x, double eps) { return f(x, of(eps)); });
  };
  const auto rows = [f](std::function<Tensor(const Tensor& y, const Tensor& x)> wrong) {
    return affine([f, wrong](const Tensor& x, double eps) { return wrong(f(x, eps), x); });
  };
  return {
      {"eps is left out", with_eps([](double) { return 0.; })},
      {"eps is 1e-5 whatever is asked", with_eps([](double) { return 1e-5; })},
      {"eps is squared", with_eps([](double eps) { return eps * eps; })},
      {"eps is ten times too large", with_eps([](double eps) { return 10 * eps; })},
      {"1 + gain",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) * (w.gain + 1) + w.bias; })},
      {"the gain is left out",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) + w.bias + w.gain * 0.0; })},
      {"the bias is left out",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) * w.gain + w.bias * 0.0; })},
      {"the gain acts on the bias too",
       differentiated([f](const Tensor& x, const NormWeights& w) { return (f(x, w.eps) + w.bias) * w.gain; })},
      {"the gain's sign is lost",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) * w.gain.abs() + w.bias; })},
      {"sums in f32", affine([f](const Tensor& x, double eps) { return f(x.to(DType::f32), eps).to(DType::f64); })},
      {"statistics over the batch", affine([f](const Tensor& x, double eps) {
         const Tensor flat = x.reshape({-1, x.size(-1)});
         return f(flat.transpose().contiguous(), eps).transpose().contiguous().reshape(x.shape());
       })},
      {"statistics over all entries", affine([f](const Tensor& x, double eps) {
         return f(x.reshape({1, -1}), eps).reshape(x.shape());
       })},
      {"of three dimensions, statistics over the second", affine([f](const Tensor& x, double eps) {
         if (x.rank() < 3) return f(x, eps);
         return f(x.transpose(1, 2).contiguous(), eps).transpose(1, 2).contiguous();
       })},
      {"the last row is not normalised", rows([](const Tensor& y, const Tensor& x) {
         const Tensor a = y.reshape({-1, y.size(-1)}), b = x.reshape({-1, y.size(-1)});
         return cat({slice(a, 0, 0, a.size(0) - 1), slice(b, 0, b.size(0) - 1, b.size(0))}, 0).reshape(x.shape());
       })},
      {"of odd widths the last entry is left as it is", rows([](const Tensor& y, const Tensor& x) {
         const int64_t n = x.size(-1);
         return n % 2 == 0 ? y : cat({narrow(y, -1, 0, n - 1), narrow(x, -1, n - 1, 1)}, -1);
       })},
      {"beyond 16 entries nothing is normalised", rows([](const Tensor& y, const Tensor& x) {
         const int64_t n = x.size(-1);
         return n <= 16 ? y : cat({narrow(y, -1, 0, 16), narrow(x, -1, 16, n - 16)}, -1);
       })},
      {"a constant row, or one of zeros, gives 0", differentiated([f](const Tensor& x, const NormWeights& w) {
         const Tensor varies = (x.amax({-1}, true) > x.amin({-1}, true)).to(DType::f64).detach();
         return (f(x, w.eps) * w.gain + w.bias) * varies;
       })},
      {"the forward writes over its input",
       {[f](const Tensor& x, const NormWeights& w) {
          const Tensor y = affine(f).forward(x, w);
          copy_into(x, y);
          return y;
        },
        affine(f).backward}},
      {"the forward takes the bias as its workspace",
       {[f](const Tensor& x, const NormWeights& w) {
          const Tensor y = affine(f).forward(x, w);
          fill(w.bias, 0);
          return y;
        },
        affine(f).backward}},
  };
}

Candidates wrong_backwards(const Normalise& f) {
  const auto with = [f](auto change) { return with_backward(f, changed(f, change)); };
  using G = NormGradients&;
  using T = const Tensor&;
  using W = const NormWeights&;
  return {
      {"dx is not scaled by the gain", with([f](G g, T x, W w, T dy) { g.x = back(f, x, w.eps, dy); })},
      {"dx is scaled by the gain at the end", with([f](G g, T x, W w, T dy) { g.x = back(f, x, w.eps, dy) * w.gain; })},
      {"dx is 0, as the gradient of a LayerNorm's sum is", with([](G g, T x, W, T) { g.x = zeros_like(x); })},
      {"dx is that of eps 0", with([f](G g, T x, W w, T dy) { g.x = back(f, x, 1e-300, dy * w.gain); })},
      {"dx takes the normalised rows for x",
       with([f](G g, T x, W w, T dy) { g.x = back(f, f(x, w.eps), w.eps, dy * w.gain); })},
      {"dx of the last row is 0", with([](G g, T x, W, T) {
         const Tensor flat = g.x.reshape({-1, x.size(-1)});
         flat[flat.size(0) - 1] = 0;
         g.x = flat.reshape(x.shape());
       })},
      {"dx sees the first row's dy", with([f](G g, T x, W w, T dy) {
         g.x = back(f, x, w.eps,
                    (rows_of(dy, 0, 1) * w.gain).expand({x.numel() / x.size(-1), x.size(-1)}).reshape(x.shape()));
       })},
      {"dgain is the first row's", with([f](G g, T x, W w, T dy) { g.gain = rows_of(dy * f(x, w.eps), 0, 1).sum(0); })},
      {"dgain leaves out the last row", with([f](G g, T x, W w, T dy) {
         g.gain = g.gain - rows_of(dy * f(x, w.eps), x.numel() / x.size(-1) - 1, x.numel() / x.size(-1)).sum(0);
       })},
      {"dgain is the sum of dy x", with([](G g, T x, W, T dy) { g.gain = over_rows(dy * x); })},
      {"dgain is the sum of dy y",
       with([f](G g, T x, W w, T dy) { g.gain = over_rows(dy * affine(f).forward(x, w)); })},
      {"dgain is scaled by the gain", with([](G g, T, W w, T) { g.gain = g.gain * w.gain; })},
      {"dbias is scaled by the gain", with([](G g, T, W w, T) { g.bias = g.bias * w.gain; })},
      {"dbias is a mean", with([](G g, T x, W, T) {
         g.bias = g.bias * (static_cast<double>(x.size(-1)) / static_cast<double>(x.numel()));
       })},
      {"the backward writes over dy", with([](G g, T, W, T dy) { copy_into(dy, g.x); })},
  };
}

}  // namespace

Candidates common_faults(const Normalise& f) {
  Candidates all = wrong_forwards(f);
  for (Candidate& c : wrong_backwards(f)) all.push_back(std::move(c));
  return all;
}

}  // namespace course
