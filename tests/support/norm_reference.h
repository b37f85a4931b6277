// Naive normalizations of rows, for the rows of norms and of ops that fuse a norm.
#pragma once

#include <cmath>

#include "core/formulas/norm_spec.h"
#include "tests/support/draw.h"

namespace isonorm::test {

// The number of entries in a fraction p of `width`, for p with at most three decimals: the least k with 1000 k >= (1000
// p) width, in integers.
inline int64_t taken_entries(double p, int64_t width) { return (std::llround(1000 * p) * width + 999) / 1000; }

// Two passes over each row, directly from the papers' formulas; see autograd/ops/norm.h. gain and bias may be null.
inline Array normalized(const Array& x, const NormSpec& spec, const Array* gain, const Array* bias) {
  Array y(x.shape);
  const int64_t width = x.shape[x.shape.rank - 1];
  for (int64_t begin = 0; begin < x.size(); begin += width) {
    const double* v = x.v.data() + begin;
    long double mean = 0, square = 0;
    int64_t taken = width;
    if (spec.kind == NormKind::rms) taken = taken_entries(spec.p, width);
    for (int64_t i = 0; i < width; ++i) mean += static_cast<long double>(v[i]) / width;
    const long double last = -mean * width;  // the entry that a compressed row does not store
    if (spec.kind != NormKind::layer) mean = 0;
    for (int64_t i = 0; i < taken; ++i) square += (v[i] - mean) * (v[i] - mean);
    long double divisor = taken;
    if (spec.kind == NormKind::crms) square += last * last;
    if (spec.kind == NormKind::crms || spec.kind == NormKind::crms_isometric) divisor = width + 1;
    const long double scale = spec.kind == NormKind::none ? 1 : 1 / std::sqrt(square / divisor + spec.eps);
    for (int64_t i = 0; i < width; ++i) {
      long double out = (v[i] - mean) * scale;
      if (gain) out *= gain->v[i];
      if (bias) out += bias->v[i];
      y.v[begin + i] = static_cast<double>(out);
    }
  }
  return y;
}

// Says if gain and bias are given. They follow the first inputs in this order.
struct Affine {
  bool gain, bias;
  const char* label;

  Tensor gain_of(const Tensors& x, size_t first) const { return gain ? x[first] : Tensor(); }
  Tensor bias_of(const Tensors& x, size_t first) const { return bias ? x[first + gain] : Tensor(); }
  const Array* gain_of(const Arrays& x, size_t first) const { return gain ? &x[first] : nullptr; }
  const Array* bias_of(const Arrays& x, size_t first) const { return bias ? &x[first + gain] : nullptr; }
  void draw(Draw& draw, const Dims& shape, Arrays& x) const {
    if (gain) x.push_back(draw.uniform({shape[shape.rank - 1]}, 0.5, 2));
    if (bias) x.push_back(draw.normal({shape[shape.rank - 1]}));
  }
};
inline constexpr Affine kAffine[] = {
    {false, false, ""}, {true, false, " gain"}, {true, true, " gain bias"}, {false, true, " bias"}};

}  // namespace isonorm::test
