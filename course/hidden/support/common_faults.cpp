// Faults that any norm can have. Most give right results on a small random matrix. They show only with another
// eps, width, number of rows, rank, row, gain or memory layout, in a second call, or in changed arguments.
#include <algorithm>
#include <memory>

#include "hidden/support/candidates.h"

using namespace isonorm;

namespace course {
namespace {

using Backward = decltype(NormUnderTest::backward);

// The gradient of <h, f(x)> with respect to x.
Tensor back(const Normalise& f, const Tensor& x, double eps, const Tensor& h) {
  const Tensor at = x.clone().require_grad();
  return grad(f(at, eps), {at}, h)[0];
}
Tensor flat(const Tensor& t) { return t.reshape({-1, t.size(-1)}); }
int64_t count_rows(const Tensor& t) { return t.numel() / t.size(-1); }
Tensor over_rows(const Tensor& t) { return flat(t).sum(0); }
Tensor first_rows(const Tensor& t, int64_t n) { return slice(flat(t), 0, 0, std::min(n, count_rows(t))); }

// The first 16 rows of `first`, followed by the rows of `rest` from the 17th on.
Tensor joined_rows(const Tensor& first, const Tensor& rest) {
  if (count_rows(first) <= 16) return first;
  return cat({first_rows(first, 16), slice(flat(rest), 0, 16, count_rows(rest))}, 0).reshape(first.shape());
}
// Rows with the first n entries of `first`, then the other entries of `rest`.
Tensor joined_entries(const Tensor& first, const Tensor& rest, int64_t n) {
  return cat({narrow(first, -1, 0, n), narrow(rest, -1, n, rest.size(-1) - n)}, -1);
}
// 1 in rows whose entries differ, else 0.
Tensor varies(const Tensor& x) { return (x.amax({-1}, true) > x.amin({-1}, true)).to(DType::f64).detach(); }
// A transposed matrix, misread with its entries in memory order.
Tensor as_it_lies(const Tensor& x) {
  return x.is_contiguous() || x.rank() != 2 ? x : x.transpose(0, 1).contiguous().reshape(x.shape());
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
      {"an eps below 1e-8 counts as 1e-8", with_eps([](double eps) { return std::max(eps, 1e-8); })},
      {"eps is rounded to f32", with_eps([](double eps) { return double{static_cast<float>(eps)}; })},
      {"the gain is left out",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) + w.bias + w.gain * 0.0; })},
      {"the bias is left out",
       differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) * w.gain + w.bias * 0.0; })},
      {"sums in f32", affine([f](const Tensor& x, double eps) { return f(x.to(DType::f32), eps).to(DType::f64); })},
      {"statistics over the batch", affine([f](const Tensor& x, double eps) {
         return f(flat(x).transpose().contiguous(), eps).transpose().contiguous().reshape(x.shape());
       })},
      {"three dimensions: statistics over the second", affine([f](const Tensor& x, double eps) {
         if (x.rank() < 3) return f(x, eps);
         return f(x.transpose(1, 2).contiguous(), eps).transpose(1, 2).contiguous();
       })},
      {"three dimensions come back as a matrix", rows([](const Tensor& y, const Tensor&) { return flat(y); })},
      {"a single row is normalised entry by entry", affine([f](const Tensor& x, double eps) {
         return count_rows(x) > 1 ? f(x, eps) : f(x.reshape({-1, 1}), eps).reshape(x.shape());
       })},
      {"rows with a single entry are not normalised",
       rows([](const Tensor& y, const Tensor& x) { return x.size(-1) == 1 ? x : y; })},
      {"rows beyond the sixteenth are not normalised",
       rows([](const Tensor& y, const Tensor& x) { return joined_rows(y, x); })},
      {"the last entry of an odd width is not normalised", rows([](const Tensor& y, const Tensor& x) {
         return x.size(-1) % 2 == 0 ? y : joined_entries(y, x, x.size(-1) - 1);
       })},
      {"beyond 16 entries nothing is normalised",
       rows([](const Tensor& y, const Tensor& x) { return x.size(-1) <= 16 ? y : joined_entries(y, x, 16); })},
      {"the entries beyond 32 have statistics of their own", affine([f](const Tensor& x, double eps) {
         const int64_t n = x.size(-1);
         if (n <= 32) return f(x, eps);
         return cat({f(narrow(x, -1, 0, 32), eps), f(narrow(x, -1, 32, n - 32), eps)}, -1);
       })},
      {"a constant row, such as zeros, gives 0", differentiated([f](const Tensor& x, const NormWeights& w) {
         return (f(x, w.eps) * w.gain + w.bias) * varies(x);
       })},
      {"the strides of a transposed matrix are ignored",
       affine([f](const Tensor& x, double eps) { return f(as_it_lies(x), eps); })},
      {"the gain of the first call is kept",
       {[f, kept = std::make_shared<Tensor>()](const Tensor& x, const NormWeights& w) {
          if (!kept->defined() || kept->shape() != w.gain.shape()) *kept = w.gain.clone();
          return affine(f).forward(x, {*kept, w.bias, w.eps});
        },
        affine(f).backward}},
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

// The backward uses the x of the last forward with this shape.
NormUnderTest of_last_forward(const Normalise& f) {
  const auto last = std::make_shared<Tensor>();
  return {[f, last](const Tensor& x, const NormWeights& w) {
            *last = x.clone();
            return affine(f).forward(x, w);
          },
          [f, last](const Tensor& x, const NormWeights& w, const Tensor& dy) {
            return affine(f).backward(last->defined() && last->shape() == x.shape() ? *last : x, w, dy);
          }};
}

Candidates wrong_backwards(const Normalise& f) {
  const auto with = [f](auto change) { return with_backward(f, changed(f, change)); };
  using G = NormGradients&;
  using T = const Tensor&;
  using W = const NormWeights&;
  return {
      {"dx is not scaled by the gain", with([f](G g, T x, W w, T dy) { g.x = back(f, x, w.eps, dy); })},
      {"dx is 0, as the gradient of a LayerNorm's sum is", with([](G g, T x, W, T) { g.x = zeros_like(x); })},
      {"dx has eps 1e-5 for every eps", with([f](G g, T x, W w, T dy) { g.x = back(f, x, 1e-5, dy * w.gain); })},
      {"dx of a constant row is 0", with([](G g, T x, W, T) { g.x = g.x * varies(x); })},
      {"dx of rows beyond the sixteenth is 0", with([](G g, T x, W, T) { g.x = joined_rows(g.x, zeros_like(x)); })},
      {"the backward takes x of the last forward", of_last_forward(f)},
      {"the strides of a transposed dy are ignored",
       with([f](G g, T x, W w, T dy) { g = affine(f).backward(x, w, as_it_lies(dy)); })},
      {"dgain is the sum of dy x", with([](G g, T x, W, T dy) { g.gain = over_rows(dy * x); })},
      {"dgain takes (y - bias) / gain for the normalised rows",
       with([f](G g, T x, W w, T dy) { g.gain = over_rows(dy * (affine(f).forward(x, w) - w.bias) / w.gain); })},
      {"dgain sums the first sixteen rows",
       with([f](G g, T x, W w, T dy) { g.gain = first_rows(dy * f(x, w.eps), 16).sum(0); })},
      {"three dimensions: dgain sums over the first", with([f](G g, T x, W w, T dy) {
         if (x.rank() == 3) g.gain = over_rows(narrow(dy * f(x, w.eps), 1, 0, 1));
       })},
      {"dgain is added to the last call's dgain", with([kept = std::make_shared<Tensor>()](G g, T, W w, T) {
         if (kept->defined() && kept->shape() == w.gain.shape()) g.gain = g.gain + *kept;
         *kept = g.gain;
       })},
      {"dbias leaves out the rows after the last whole four",
       with([](G g, T, W, T dy) { g.bias = first_rows(dy, count_rows(dy) / 4 * 4).sum(0); })},
      {"dbias of entries beyond 32 is 0", with([](G g, T, W w, T) {
         if (w.bias.size(0) > 32) g.bias = joined_entries(g.bias, zeros_like(g.bias), 32);
       })},
      {"the backward writes over dy", with([](G g, T, W, T dy) { copy_into(dy, g.x); })},
      {"the backward writes the normalised rows over x", with([f](G, T x, W w, T) { copy_into(x, f(x, w.eps)); })},
  };
}

}  // namespace

Candidates common_faults(const Normalise& f) {
  Candidates all = wrong_forwards(f);
  for (Candidate& c : wrong_backwards(f)) all.push_back(std::move(c));
  return all;
}

}  // namespace course
