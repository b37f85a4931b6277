// The floating formats of files: each floating dtype, and F16 (binary16). Tensor has no F16: the numbers are held in
// f32, which represents them all.
// Source: IEEE 754-2019, 3.3 and 4.3.1.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace isonorm {

struct NumberFormat {
  NumberFormat(DType dtype, bool half = false) : dtype(dtype), half(half) {}

  DType dtype;  // of the tensor that holds the numbers
  bool half;    // the numbers are all representable in F16

  // The number of significant bits, and the exponents of the smallest normal and the largest number, as std::frexp
  // counts them.
  int digits() const { return half ? 11 : dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : 8; }
  int lowest() const { return half ? -13 : dtype == DType::f64 ? -1021 : -125; }
  int highest() const { return half ? 16 : dtype == DType::f64 ? 1024 : 128; }

  bool operator==(const NumberFormat&) const = default;
};

// The distance between neighbouring numbers of a format, in the binade of x.
class Steps {
 public:
  explicit Steps(NumberFormat format) : digits_(format.digits()), lowest_(format.lowest()) {}
  double at(double x) const {
    const int biased = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7ff);
    const int exponent = std::max(biased - 1022, lowest_) - digits_;  // x = f 2^(biased - 1022), f in [1/2, 1)
    if (exponent < -1022) return std::ldexp(1.0, exponent);
    return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
  }

 private:
  int digits_, lowest_;
};

// The name of every format that files may have.
inline constexpr std::array<const char*, 4> kFormatNames = {"f32", "f64", "bf16", "f16"};
// Empty if no format has this name.
std::optional<NumberFormat> format_named(const std::string& name);
const char* name_of(NumberFormat format);

// Distance from 1 to the next larger number; 2^-10 for F16. Throws for integers.
double epsilon(NumberFormat format);
NumberFormat coarser(NumberFormat a, NumberFormat b);
// The distance between subnormal numbers, the finest step of the format.
double smallest_step(NumberFormat format);
// The largest number; 65504 for F16.
double largest_number(NumberFormat format);

// Rounds each number of x (a floating dtype) once to nearest, ties to even. Infinity and NaN stay. Throws, naming the
// tensor, the number and the format's largest number, if a finite number would overflow.
Tensor rounded(const Tensor& x, NumberFormat format, const std::string& name);

}  // namespace isonorm
