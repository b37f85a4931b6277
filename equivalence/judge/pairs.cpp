#include "equivalence/judge/pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

double relative(double difference, double scale) { return difference == 0 ? 0 : difference / scale; }

// max |at(i)| in one pass. Without signs, numbers are ordered like their bits, and NaN is above all.
template <class T, class At> double largest_of(int64_t count, const At& at) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  Bits most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max<Bits>(most, std::bit_cast<Bits>(at(i)) << 1);
  return std::bit_cast<T>(static_cast<Bits>(most >> 1));
}

template <class T> double largest_difference(const Tensor& x, const Tensor& y) {
  const Tensor a = detached::contiguous(x), b = detached::contiguous(y);
  const T *const p = a.data<T>(), *const q = b.data<T>();
  return largest_of<T>(a.numel(), [&](int64_t i) { return p[i] - q[i]; });
}

template <class T> double largest_number(const Tensor& x) {
  const Tensor a = detached::contiguous(x);
  const T* const p = a.data<T>();
  return largest_of<T>(a.numel(), [&](int64_t i) { return p[i]; });
}

bool on_cpu(const Tensor& x, DType dtype) { return x.device() == kCpu && x.dtype() == dtype; }

double deviation_of(const Pair& p) {
  check(p.value.shape() == p.reference.shape(), p.name, ": has shape ", p.value.shape(), ", the reference ",
        p.reference.shape());
  const auto both = [&](DType dtype) { return on_cpu(p.value, dtype) && on_cpu(p.reference, dtype); };
  const double largest = both(DType::f64)   ? largest_difference<double>(p.value, p.reference)
                         : both(DType::f32) ? largest_difference<float>(p.value, p.reference)
                                            : largest_entry(p.value - p.reference);
  return relative(largest, p.scale);
}

Dims index_of(const Pair& p, int64_t flat) {
  Dims index = index_at(p.value.shape(), flat);
  if (index.rank > 0) index[0] += p.first_row;
  return index;
}

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

double largest_entry(const Tensor& x) {
  if (x.numel() == 0) return 0;
  if (on_cpu(x, DType::f64)) return largest_number<double>(x);
  if (on_cpu(x, DType::f32)) return largest_number<float>(x);
  NoGrad no_grad;
  return amax(abs(x)).item();
}

std::pair<const Pair*, double> furthest_pair(const std::vector<Pair>& pairs) {
  NoGrad no_grad;
  const Pair* worst = nullptr;
  double most = 0;
  for (const Pair& p : pairs) {
    const double d = deviation_of(p);
    if (p.value.numel() == 0 || (worst && !(d > most) && !std::isnan(d))) continue;
    worst = &p, most = d;
    if (std::isnan(d)) break;
  }
  return {worst, most};
}

double deviation(const std::vector<Pair>& pairs) { return furthest_pair(pairs).second; }

Dims index_at(const Dims& shape, int64_t flat) {
  Dims index = shape;
  for (int dim = index.rank - 1; dim >= 0; --dim) {
    index[dim] = flat % shape[dim];
    flat /= shape[dim];
  }
  return index;
}

std::optional<EntryPlace> furthest_off(const std::vector<Pair>& pairs) {
  const Pair* const worst = furthest_pair(pairs).first;
  if (!worst) return {};
  const std::vector<double> value = worst->value.to_vector<double>(), reference = worst->reference.to_vector<double>();
  std::optional<EntryPlace> place;
  for (size_t i = 0; i < value.size(); ++i) {
    const double d = relative(std::abs(value[i] - reference[i]), worst->scale);
    if (place && !(d > place->deviation) && !std::isnan(d)) continue;
    place = EntryPlace{worst->name, index_of(*worst, static_cast<int64_t>(i)), value[i], reference[i], d};
    if (std::isnan(d)) break;
  }
  return place;
}

std::string describe(const EntryPlace& p) {
  return text(p.tensor, p.index.rank > 0 ? text(p.index) : "", " is ", number_text(p.value), ", in the reference ",
              number_text(p.reference));
}

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
