// NormSpec: the kind of normalization of the last dimension, and the two parameters of its formula.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"

namespace isonorm {

// none: the identity. crms: a row of width d - 1 that represents (v, -sum v). crms_isometric: the same row in an
// orthonormal basis.
enum class NormKind : uint8_t { none, layer, rms, crms, crms_isometric };

struct NormSpec {
  NormKind kind = NormKind::layer;
  double eps = 1e-5;  // inside the root
  double p = 1;       // rms only: the mean square is taken over this leading share of the entries (partial RMSNorm)
};

// True if a row lacks the last entry of the vector that it stands for.
constexpr bool is_compressed(NormKind kind) { return kind == NormKind::crms || kind == NormKind::crms_isometric; }

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

// Number of leading entries of a row of `width` that are averaged: ceil(p width), at least 1 (Zhang & Sennrich,
// 1910.07467). p is taken as the decimal number that was rounded to this double or float: 0.07 of 100 means 7 entries,
// though the product is 7.000000000000001. Rounding changes p by at most u = 2^-53 (float: 2^-24), relative, and the
// product by 2^-53. If the decimal share is exactly k entries, the product is within k (u + 2^-53) of k, to first
// order. The tolerance is twice that, to cover higher orders.
inline int64_t norm_entries(const NormSpec& spec, int64_t width) {
  if (spec.p == 1) return width;
  const double product = spec.p * static_cast<double>(width), whole = std::round(product);
  const double rounding = static_cast<double>(static_cast<float>(spec.p)) == spec.p ? 0x1p-24 : 0x1p-53;
  const bool meant = std::abs(product - whole) <= 2 * whole * (rounding + 0x1p-53);
  return std::clamp<int64_t>(static_cast<int64_t>(meant ? whole : std::ceil(product)), 1, std::max<int64_t>(1, width));
}

// The divisor of their sum of squares. It is one more for compressed rows, whose dropped entry counts, too
// (2305.14858).
inline int64_t norm_divisor(const NormSpec& spec, int64_t width) {
  return is_compressed(spec.kind) ? width + 1 : norm_entries(spec, width);
}

}  // namespace isonorm
