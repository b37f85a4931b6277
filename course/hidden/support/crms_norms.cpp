// CRMSNorms: three right ones, and faults that only this norm can have.
#include <algorithm>

#include "hidden/support/candidates.h"

using namespace isonorm;

namespace course {
namespace {

Tensor sum_of(const Tensor& t) { return t.sum(-1, true); }
double d_of(const Tensor& v) { return static_cast<double>(v.size(-1) + 1); }
// sqrt(squares / divisor + eps)
Tensor root(const Tensor& squares, double divisor, double eps) { return (squares / divisor + eps).sqrt(); }
Tensor squares(const Tensor& v) { return sum_of(v.square()) + sum_of(v).square(); }
Tensor normalised(const Tensor& v, double eps) { return v / root(squares(v), d_of(v), eps); }

// RMSNorm of the whole row (v, -sum v), without its last entry.
Tensor of_whole_row(const Tensor& v, double eps) {
  const Tensor x = cat({v, -sum_of(v)}, -1);
  return narrow(x / root(sum_of(x.square()), d_of(v), eps), -1, 0, v.size(-1));
}

// Every row with its entries in reverse order.
Tensor flipped(const Tensor& v) {
  return index_select(v, -1, arange(static_cast<double>(v.size(-1) - 1), -1, -1, {.dtype = DType::i64}));
}

}  // namespace

Candidates right_crms_norms() {
  return {{"composed", affine(normalised)},
          {"fused", differentiated([](const Tensor& v, const NormWeights& w) {
             return crms_norm(v, w.gain, w.bias, {.eps = w.eps});
           })},
          {"the whole row's, summed from the end",
           affine([](const Tensor& v, double eps) { return flipped(of_whole_row(flipped(v), eps)); })}};
}

Candidates wrong_crms_norms() {
  Candidates all = common_faults(normalised);
  const auto add = [&](const char* name, const Normalise& f) { all.push_back({name, affine(f)}); };
  add("the divisor is d - 1, the stored width",
      [](const Tensor& v, double eps) { return v / root(squares(v), d_of(v) - 1, eps); });
  add("S^2 is left out: the isometric norm",
      [](const Tensor& v, double eps) { return v / root(sum_of(v.square()), d_of(v), eps); });
  add("S^2 is left out, and the divisor is d - 1: RMSNorm",
      [](const Tensor& v, double eps) { return v / root(sum_of(v.square()), d_of(v) - 1, eps); });
  add("the row is centred: LayerNorm", [](const Tensor& v, double eps) {
    const Tensor c = v - v.mean(-1, true);
    return c / root(sum_of(c.square()), d_of(v) - 1, eps);
  });
  add("eps is outside of the root",
      [](const Tensor& v, double eps) { return v / (root(squares(v), d_of(v), 0) + eps); });
  add("S is detached: the backward has v for v + S", [](const Tensor& v, double eps) {
    return v / root(sum_of(v.square()) + sum_of(v).square().detach(), d_of(v), eps);
  });
  add("S leaves out the last entry of odd widths", [](const Tensor& v, double eps) {
    return v / root(sum_of(v.square()) + sum_of(narrow(v, -1, 0, v.size(-1) / 2 * 2)).square(), d_of(v), eps);
  });
  add("S sums only the first 16 entries", [](const Tensor& v, double eps) {
    return v /
           root(sum_of(v.square()) + sum_of(slice(v, -1, 0, std::min<int64_t>(v.size(-1), 16))).square(), d_of(v), eps);
  });
  add("d is at most 32", [](const Tensor& v, double eps) { return v / root(squares(v), std::min(d_of(v), 32.), eps); });
  const auto backward = [&](const char* name, auto dx) {
    all.push_back({name, with_backward(normalised, [dx](const Tensor& v, const NormWeights& w, const Tensor& dy) {
                     NormGradients g = affine(normalised).backward(v, w, dy);
                     g.x = dx(g.x, v, w, dy * w.gain);
                     return g;
                   })});
  };
  backward("dv is centred, as LayerNorm's is",
           [](const Tensor& dv, const Tensor&, const NormWeights&, const Tensor&) { return dv - dv.mean(-1, true); });
  backward("the backward's divisor is d - 1",
           [](const Tensor&, const Tensor& v, const NormWeights& w, const Tensor& h) {
             const Tensor r = root(squares(v), d_of(v), w.eps);
             return h / r - (v + sum_of(v)) * sum_of(h * v) / (r.pow(3) * (d_of(v) - 1));
           });
  return all;
}

}  // namespace course
