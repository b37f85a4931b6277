#include "equivalence/compare/power.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"

namespace isonorm::equivalence {

bool has_factor(const Pair& p) { return p.scale > 0 && p.scale == largest_entry(p.reference); }

Offset offset(const Pair& p) {
  NoGrad no_grad;
  Offset o{.entry = deviation({p})};
  if (!has_factor(p)) return o;
  // In units of the largest entry, so that no square under- or overflows.
  const Tensor r = p.reference.to(DType::f64) / p.scale, d = p.value.to(DType::f64) / p.scale - r;
  o.factor = std::abs(sum(d * r).item()) / sum(square(r)).item();
  return o;
}

Offset larger(const Offset& a, const Offset& b) { return {larger(a.entry, b.entry), larger(a.factor, b.factor)}; }

// |(1 + f) x - r| >= f |x| - |x - r| >= f (1 - off) - off, in units of r.
double seen_from(double off, double limit) { return off < 1 ? (limit + off) / (1 - off) : INFINITY; }

std::string would_have_shown(double factor, const std::string& of) {
  const double unit = factor > 0 ? std::pow(10, std::floor(std::log10(factor)) - 1) : 1;  // of the second digit
  const double up = std::ceil(factor / unit * (1 - 1e-12)) * unit;
  return text("a factor of 1 + ", scientific(up), " of ", of, " would have shown");
}

}  // namespace isonorm::equivalence
