// The pointwise ops of two tensors. core/formulas/pointwise.h lists them.
#pragma once

#include <cmath>
#include <type_traits>

#include "core/formulas/hd.h"

namespace isonorm::ops {

// Binary ops: f(a, b). Their derivatives are rules in autograd/ops/pointwise.cpp.

struct Add {
  static constexpr const char* name = "add";
  template <class T> ISO_HD static T f(T a, T b) { return a + b; }
};
struct Sub {
  static constexpr const char* name = "sub";
  template <class T> ISO_HD static T f(T a, T b) { return a - b; }
};
struct Mul {
  static constexpr const char* name = "mul";
  template <class T> ISO_HD static T f(T a, T b) { return a * b; }
};
struct Div {
  static constexpr const char* name = "div";
  template <class T> ISO_HD static T f(T a, T b) { return a / b; }
};
struct Minimum {  // NaN in either operand gives NaN
  static constexpr const char* name = "minimum";
  template <class T> ISO_HD static T f(T a, T b) { return a != a ? a : a < b ? a : b; }
};
struct Maximum {
  static constexpr const char* name = "maximum";
  template <class T> ISO_HD static T f(T a, T b) { return a != a ? a : a > b ? a : b; }
};
struct Pow {
  static constexpr const char* name = "pow";
  template <class T> ISO_HD static T f(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(0);  // pow() takes no integers
    else
      return std::pow(a, b);
  }
};
struct Remainder {  // a - b floor(a/b), with the sign of b. By 0: NaN, for integers 0
  static constexpr const char* name = "remainder";
  template <class T> ISO_HD static T f(T a, T b) {
    T r;
    if constexpr (std::is_integral_v<T>)
      r = b == 0 || b == T(-1) ? T(0) : a % b;  // the smallest integer by -1 overflows
    else
      r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

// Comparisons give u8: 1 if true, else 0.

struct Eq {
  static constexpr const char* name = "eq";
  template <class T> ISO_HD static bool f(T a, T b) { return a == b; }
};
struct Ne {
  static constexpr const char* name = "ne";
  template <class T> ISO_HD static bool f(T a, T b) { return a != b; }
};
struct Lt {
  static constexpr const char* name = "lt";
  template <class T> ISO_HD static bool f(T a, T b) { return a < b; }
};
struct Le {
  static constexpr const char* name = "le";
  template <class T> ISO_HD static bool f(T a, T b) { return a <= b; }
};
struct Gt {
  static constexpr const char* name = "gt";
  template <class T> ISO_HD static bool f(T a, T b) { return a > b; }
};
struct Ge {
  static constexpr const char* name = "ge";
  template <class T> ISO_HD static bool f(T a, T b) { return a >= b; }
};

struct LogicalAnd {
  static constexpr const char* name = "logical_and";
  template <class T> ISO_HD static bool f(T a, T b) { return a != 0 && b != 0; }
};
struct LogicalOr {
  static constexpr const char* name = "logical_or";
  template <class T> ISO_HD static bool f(T a, T b) { return a != 0 || b != 0; }
};

}  // namespace isonorm::ops
