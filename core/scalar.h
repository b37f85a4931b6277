// Scalar: a number beside a tensor in an op. An integer keeps its value: a double rounds integers beyond 2^53.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace isonorm {

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
  bool is_exact_ = false;  // an integer was given, and integer_ is it
  int64_t integer_ = 0;
};

}  // namespace isonorm
