// Element types, the bf16 storage type, Scalar, and the only switch from a run-time DType to a C++ type.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "core/error.h"
#include "core/formulas/hd.h"

namespace isonorm {

enum class DType : uint8_t { f32, f64, bf16, i64, u8 };

// The upper half of a float. Conversion rounds to nearest even, once, and keeps NaN, bit-compatible with CUDA's
// __nv_bfloat16.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  ISO_HD bf16(float value) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));  // the same result, also for NaN, in one instruction
#else
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
  }
  template <class Wide>
  requires std::same_as<Wide, double> || std::same_as<Wide, long double> ISO_HD bf16(Wide value)
      : bf16(rounded_to_odd(value)) {}
  ISO_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  // Rounds towards zero, then sets the last bit if digits were lost, so that they still count when the float is rounded
  // to bf16 (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
  // odd", 2008).
  template <class Wide> ISO_HD static float rounded_to_odd(Wide value) {
    const float nearest = static_cast<float>(value);
    const Wide back = nearest;
    const bool beyond = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) - beyond) | uint32_t{back != value});
  }
};

// The type that kernels compute in if the elements are stored as T.
template <class T> struct Accumulate { using type = T; };
template <> struct Accumulate<bf16> { using type = float; };
template <class T> using acc_t = typename Accumulate<T>::type;

// The element types of tensors.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, bf16> ||
    std::same_as<T, int64_t> || std::same_as<T, uint8_t>;

template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(Element<T>,
                "the elements of tensors are float, double, bf16, int64_t or uint8_t: ask for int64_t instead of "
                "other integers, for uint8_t instead of bool; x.to_vector<T>() converts to any number");
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, bf16>) return DType::bf16;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  return DType::u8;
}();

// The element type that a C++ number type is stored as: uint8_t for bool, int64_t for integers, double for long double.
template <class T>
using element_t = std::conditional_t<
    Element<T>, T,
    std::conditional_t<std::same_as<T, bool>, uint8_t, std::conditional_t<std::integral<T>, int64_t, double>>>;

constexpr int64_t size_of(DType d) {
  switch (d) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(DType d) {
  switch (d) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

constexpr bool is_floating(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::bf16; }

// Accumulation dtype: f32 for bf16, otherwise the dtype itself.
constexpr DType acc_dtype(DType d) { return d == DType::bf16 ? DType::f32 : d; }

// Distance from 1 to the next larger value: 2^-23, 2^-52, 2^-7. Throws for integers.
inline double epsilon(DType d) {
  check(is_floating(d), "epsilon: dtype is ", name_of(d), ", expected a floating one");
  return d == DType::f64 ? 0x1p-52 : d == DType::f32 ? 0x1p-23 : 0x1p-7;
}

// A number that an op takes together with a tensor. Integers stay exact; a double would round integers beyond 2^53.
class Scalar {
 public:
  template <std::convertible_to<double> T> Scalar(const T& x) : value_(static_cast<double>(x)) {
    if constexpr (std::integral<T>)
      integer_ = static_cast<int64_t>(x), is_exact_ = std::is_signed_v<T> || integer_ >= 0;
  }
  operator double() const { return value_; }

  // The number as an int64_t, if it is one.
  std::optional<int64_t> integer() const {
    if (is_exact_) return integer_;
    if (std::trunc(value_) == value_ && value_ >= -0x1p63 && value_ < 0x1p63) return static_cast<int64_t>(value_);
    return {};
  }
  friend void append_text(std::string& s, Scalar x) {
    x.is_exact_ ? append_text(s, x.integer_) : append_text(s, x.value_);
  }

 private:
  double value_;
  bool is_exact_ = false;  // constructed from an integer, which is integer_
  int64_t integer_ = 0;
};

// Throws "op: 300 does not fit u8" if the integer dtype `d` cannot hold `value`, truncated. Every value fits a floating
// dtype.
inline void check_fits(Scalar value, DType d, const char* op) {
  const bool fits =
      d == DType::u8 ? value > -1 && value < 256 : value.integer().has_value() || (value > -0x1p63 && value < 0x1p63);
  check(is_floating(d) || fits, op, ": ", value, " does not fit ", name_of(d));
}

inline void append_text(std::string& s, DType d) { s += name_of(d); }

// Calls f.template operator()<T>() with T = float, double or bf16. Throws for integers, naming `what`.
template <class F> decltype(auto) visit_floating(DType d, const char* what, F&& f) {
  switch (d) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    default:
      raise(ErrorKind::invalid, text(what, ": dtype is ", d, ", expected f32, f64 or bf16"), __FILE__, __LINE__);
  }
}

// Like visit_floating(), and takes i64 too.
template <class F> decltype(auto) visit_numbers(DType d, const char* what, F&& f) {
  return d == DType::i64 ? f.template operator()<int64_t>() : visit_floating(d, what, f);
}

// Calls f.template operator()<T>() with the C++ type of any dtype.
template <class F> decltype(auto) visit_all(DType d, F&& f) {
  switch (d) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::i64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<uint8_t>();
  }
}

}  // namespace isonorm
