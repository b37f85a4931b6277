#include "equivalence/judge/pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
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

}  // namespace isonorm::equivalence
