// NormSpec: which normalization of the last dimension is meant, with the two numbers that its formula leaves open.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"

namespace isonorm {

// none: the identity. crms: a row of width d - 1 that stands for (v, -sum v). crms_isometric: the same row in an
// orthonormal basis.
enum class NormKind : uint8_t { none, layer, rms, crms, crms_isometric };

struct NormSpec {
  NormKind kind = NormKind::layer;
  double eps = 1e-5;  // inside the root
  double p = 1;       // rms only: the leading share of the entries that the mean square is taken over (partial RMSNorm)
};

constexpr const char* name_of(NormKind kind) {
  switch (kind) {
    case NormKind::none:
      return "none";
    case NormKind::layer:
      return "layer_norm";
    case NormKind::rms:
      return "rms_norm";
    case NormKind::crms:
      return "crms_norm";
    case NormKind::crms_isometric:
      return "crms_isometric_norm";
  }
  return "?";
}

// How many leading entries of a row of `width` are averaged: ceil(p width), at least 1 (Zhang & Sennrich, 1910.07467).
// p is meant as the decimal number whose nearest double it is, or whose nearest float: 0.07 of 100 are 7 entries,
// though the product is 7.000000000000001. With u = 2^-53 (float: 2^-24) the half unit that p was rounded by, and 2^-53
// that of the product, a decimal share of exactly k entries gives a product within k (u + 2^-53), to first order;
// doubled for the rest.
inline int64_t norm_entries(const NormSpec& spec, int64_t width) {
  if (spec.p == 1) return width;
  const double product = spec.p * static_cast<double>(width), whole = std::round(product);
  const double rounding = static_cast<double>(static_cast<float>(spec.p)) == spec.p ? 0x1p-24 : 0x1p-53;
  const bool meant = std::abs(product - whole) <= 2 * whole * (rounding + 0x1p-53);
  return std::clamp<int64_t>(static_cast<int64_t>(meant ? whole : std::ceil(product)), 1, std::max<int64_t>(1, width));
}

// What their sum of squares is divided by: one more for the compressed rows, whose dropped entry counts too
// (2305.14858).
inline int64_t norm_divisor(const NormSpec& spec, int64_t width) {
  const bool compressed = spec.kind == NormKind::crms || spec.kind == NormKind::crms_isometric;
  return compressed ? width + 1 : norm_entries(spec, width);
}

}  // namespace isonorm
