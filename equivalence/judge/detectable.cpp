#include "equivalence/judge/detectable.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "core/printed.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

struct Distances {
  double apart = 0, largest = 0;  // max |x - r|, max |r|
  double along = 0, square = 0;   // <x - r, r>, <r, r>
};

// One pass. Products are in units of a power of two near the largest entry, so that no square over- or underflows. A
// NaN shows in `along`, but not in `apart`.
template <class T> Distances distances(const Tensor& value, const Tensor& reference, double scale) {
  const Tensor a = detached::contiguous(value), b = detached::contiguous(reference);
  const T *const x = a.data<T>(), *const y = b.data<T>();
  const double unit = std::ldexp(1, std::min(-std::ilogb(scale), 1000));
  double apart = 0, largest = 0, along = 0, square = 0;
#pragma omp simd reduction(max : apart, largest) reduction(+ : along, square)
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double r = static_cast<double>(y[i]), d = static_cast<double>(x[i] - y[i]);
    const double size = std::abs(r), off = std::abs(d), of_unit = r * unit;
    apart = off > apart ? off : apart;
    largest = size > largest ? size : largest;
    along += d * unit * of_unit;
    square += of_unit * of_unit;
  }
  return {apart, largest, along, square};
}

}  // namespace

bool has_factor(const Pair& p) { return p.scale > 0 && p.scale == largest_entry(p.reference); }

Offset offset(const Pair& p) {
  if (!(p.scale > 0) || std::isinf(p.scale) || !(p.value.shape() == p.reference.shape()))
    return {.entry = deviation({p})};
  NoGrad no_grad;
  const Tensor value = to(p.value, kCpu), reference = to(p.reference, kCpu);
  const bool is_f32 = value.dtype() == DType::f32 && reference.dtype() == DType::f32;
  const Distances m = is_f32 ? distances<float>(value, reference, p.scale)
                             : distances<double>(value.to(DType::f64), reference.to(DType::f64), p.scale);
  Offset o{.entry = std::isfinite(m.along) ? m.apart / p.scale : deviation({p})};
  if (m.largest == p.scale) o.factor = std::abs(m.along) / m.square;
  return o;
}

Offset larger(const Offset& a, const Offset& b) { return {larger(a.entry, b.entry), larger(a.factor, b.factor)}; }

// |(1 + f) x - r| >= f |x| - |x - r| >= f (1 - off) - off, in units of r.
double detectable_factor(double off, double limit) { return off < 1 ? (limit + off) / (1 - off) : INFINITY; }

std::string detectable_text(double factor, const std::string& of) {
  const double unit = factor > 0 ? std::pow(10, std::floor(std::log10(factor)) - 1) : 1;  // of the second digit
  const double up = std::ceil(factor / unit * (1 - 1e-12)) * unit;
  return text("detectable: a factor of 1 + ", scientific(up), " of ", of);
}

}  // namespace isonorm::equivalence
