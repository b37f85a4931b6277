// Every pointwise op, defined once: value f, derivative df, the tensor that df reads, and the interval that a gradient
// check may sample. CPU loops, CUDA kernels, derivatives, tests and the table in docs/ops.md all follow from these
// structs and the lists at the end.
#pragma once

#include <cmath>

#include "core/formulas/hd.h"
#include "core/formulas/math.h"
#include "core/formulas/pairs.h"

namespace isonorm::ops {

// The tensor that the derivative of a unary op reads.
enum class Saves { nothing, input, output };

// Unary ops: f(x) or f(x, p) or f(x, p, q) with numbers p, q. df(saved, numbers...) is dy/dx.
//
// gate: the op consists of pieces on which df is constant. If df is 0, on a flat piece or at a kink, no gradient
// passes: dx is 0 even if dy is infinite or NaN. All ops of the library that select do this (tests: "a closed branch
// passes nothing"). A smooth op whose df happens to be 0 multiplies: 0 times an infinite dy is NaN.

struct Neg {
  static constexpr const char* name = "neg";
  static constexpr const char* formula = "-x";
  static constexpr Saves saves = Saves::nothing;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return -x; }
  template <class T> ISO_HD static T df(T) { return T(-1); }
};

struct Abs {
  static constexpr const char* name = "abs";
  static constexpr const char* formula = "|x|; the derivative at 0 is 0";
  static constexpr Saves saves = Saves::input;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3, kink = 0;
  template <class T> ISO_HD static T f(T x) { return std::abs(x); }
  template <class T> ISO_HD static T df(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : T(0); }
};

struct Sign {
  static constexpr const char* name = "sign";
  static constexpr const char* formula = "-1, 0 or 1, NaN at NaN; the derivative is 0";
  static constexpr Saves saves = Saves::nothing;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3, kink = 0;
  template <class T> ISO_HD static T f(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x != x ? x : T(0); }
  template <class T> ISO_HD static T df(T) { return T(0); }
};

struct Floor {
  static constexpr const char* name = "floor";
  static constexpr const char* formula = "the largest integer that is not above x; the derivative is 0";
  static constexpr Saves saves = Saves::nothing;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return std::floor(x); }
  template <class T> ISO_HD static T df(T) { return T(0); }
};

struct Ceil {
  static constexpr const char* name = "ceil";
  static constexpr const char* formula = "the smallest integer that is not below x; the derivative is 0";
  static constexpr Saves saves = Saves::nothing;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return std::ceil(x); }
  template <class T> ISO_HD static T df(T) { return T(0); }
};

struct Round {
  static constexpr const char* name = "round";
  static constexpr const char* formula = "the nearest integer, of two the even one; the derivative is 0";
  static constexpr Saves saves = Saves::nothing;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return std::rint(x); }
  template <class T> ISO_HD static T df(T) { return T(0); }
};

struct Exp {
  static constexpr const char* name = "exp";
  static constexpr const char* formula = "e^x";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return math::exp(x); }
  template <class T> ISO_HD static T df(T y) { return y; }
};

struct Expm1 {
  static constexpr const char* name = "expm1";
  static constexpr const char* formula = "e^x - 1";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return math::expm1(x); }
  template <class T> ISO_HD static T df(T y) { return y + 1; }
};

struct Exp2 {
  static constexpr const char* name = "exp2";
  static constexpr const char* formula = "2^x";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::exp2(x); }
  template <class T> ISO_HD static T df(T y) { return y * T(0.69314718055994530942); }
};

struct Log {
  static constexpr const char* name = "log";
  static constexpr const char* formula = "ln x";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = 0.3, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::log(x); }
  template <class T> ISO_HD static T df(T x) { return 1 / x; }
};

struct Log2 {
  static constexpr const char* name = "log2";
  static constexpr const char* formula = "log of x to base 2";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = 0.3, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::log2(x); }
  template <class T> ISO_HD static T df(T x) { return T(1.4426950408889634074) / x; }
};

struct Log1p {
  static constexpr const char* name = "log1p";
  static constexpr const char* formula = "ln(1 + x)";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -0.6, hi = 3;
  template <class T> ISO_HD static T f(T x) { return math::log1p(x); }
  template <class T> ISO_HD static T df(T x) { return 1 / (1 + x); }
};

struct Sqrt {
  static constexpr const char* name = "sqrt";
  static constexpr const char* formula = "x^(1/2)";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = 0.3, hi = 4;
  template <class T> ISO_HD static T f(T x) { return std::sqrt(x); }
  template <class T> ISO_HD static T df(T y) { return T(0.5) / y; }
};

struct Rsqrt {
  static constexpr const char* name = "rsqrt";
  static constexpr const char* formula = "x^(-1/2)";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = 0.5, hi = 3;
  template <class T> ISO_HD static T f(T x) { return 1 / std::sqrt(x); }
  template <class T> ISO_HD static T df(T y) { return T(-0.5) * y * y * y; }
};

struct Square {
  static constexpr const char* name = "square";
  static constexpr const char* formula = "x^2";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return x * x; }
  template <class T> ISO_HD static T df(T x) { return 2 * x; }
};

struct Reciprocal {
  static constexpr const char* name = "reciprocal";
  static constexpr const char* formula = "1/x";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = 0.4, hi = 3;
  template <class T> ISO_HD static T f(T x) { return 1 / x; }
  template <class T> ISO_HD static T df(T y) { return -y * y; }
};

struct Sin {
  static constexpr const char* name = "sin";
  static constexpr const char* formula =
      "sin x; beyond |x| = 1.6e6, sin of x changed by up to |x| eps; from 1e15 on, sin 0";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::sin(x); }
  template <class T> ISO_HD static T df(T x) { return math::cos(x); }
};

struct Cos {
  static constexpr const char* name = "cos";
  static constexpr const char* formula =
      "cos x; beyond |x| = 1.6e6, cos of x changed by up to |x| eps; from 1e15 on, cos 0";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::cos(x); }
  template <class T> ISO_HD static T df(T x) { return -math::sin(x); }
};

struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr const char* formula = "tanh x";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x) { return math::tanh(x); }
  template <class T> ISO_HD static T df(T y) { return 1 - y * y; }
};

struct Sigmoid {
  static constexpr const char* name = "sigmoid";
  static constexpr const char* formula = "1/(1 + e^-x)";
  static constexpr Saves saves = Saves::output;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::sigmoid(x); }
  template <class T> ISO_HD static T df(T y) { return y * (1 - y); }
};

struct Relu {
  static constexpr const char* name = "relu";
  static constexpr const char* formula = "max(x, 0); the derivative at 0 is 0, at NaN 1";
  static constexpr Saves saves = Saves::input;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3, kink = 0;
  template <class T> ISO_HD static T f(T x) { return x <= 0 ? T(0) : x; }  // NaN stays NaN
  template <class T> ISO_HD static T df(T x) { return x <= 0 ? T(0) : T(1); }
};

struct LeakyRelu {
  static constexpr const char* name = "leaky_relu";
  static constexpr const char* formula = "x where x > 0, slope x elsewhere; the derivative at 0 and NaN is the slope";
  static constexpr Saves saves = Saves::input;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3, kink = 0;
  template <class T> ISO_HD static T f(T x, T slope) { return x > 0 ? x : slope * x; }
  template <class T> ISO_HD static T df(T x, T slope) { return x > 0 ? T(1) : slope; }
};

struct Gelu {
  static constexpr const char* name = "gelu";
  static constexpr const char* formula = "x/2 (1 + erf(x/sqrt 2))";  // Hendrycks & Gimpel, 1606.08415
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::gelu(x); }
  template <class T> ISO_HD static T df(T x) { return math::gelu_grad(x); }
};

struct GeluTanh {
  static constexpr const char* name = "gelu_tanh";
  static constexpr const char* formula = "x/2 (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3)))";  // 1606.08415
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::gelu_tanh(x); }
  template <class T> ISO_HD static T df(T x) { return math::gelu_tanh_grad(x); }
};

struct Silu {
  static constexpr const char* name = "silu";
  static constexpr const char* formula = "x/(1 + e^-x)";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return x * math::sigmoid(x); }
  template <class T> ISO_HD static T df(T x) {
    const T s = math::sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

struct Softplus {
  static constexpr const char* name = "softplus";
  static constexpr const char* formula = "ln(1 + e^x)";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -4, hi = 4;
  template <class T> ISO_HD static T f(T x) { return math::softplus(x); }
  template <class T> ISO_HD static T df(T x) { return math::sigmoid(x); }
};

struct Erf {
  static constexpr const char* name = "erf";
  static constexpr const char* formula = "2/sqrt(pi) times the integral of e^(-t^2) over [0, x]";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = -2.5, hi = 2.5;
  template <class T> ISO_HD static T f(T x) { return math::erf(x); }
  template <class T> ISO_HD static T df(T x) { return T(1.1283791670955125739) * math::exp(-x * x); }
};

struct Clamp {
  static constexpr const char* name = "clamp";
  static constexpr const char* formula = "min(max(x, lo), hi); the derivative at a bound and at NaN is 0";
  static constexpr Saves saves = Saves::input;
  static constexpr bool gate = true;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
  template <class T> ISO_HD static T df(T x, T low, T high) { return x > low && x < high ? T(1) : T(0); }
};

struct PowNumber {
  static constexpr const char* name = "pow";
  static constexpr const char* formula = "x^p";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = 0.3, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return std::pow(x, p); }
  template <class T> ISO_HD static T df(T x, T p) { return p == 0 ? T(0) : p * std::pow(x, p - 1); }
};

struct AddNumber {
  static constexpr const char* name = "add";
  static constexpr const char* formula = "x + p";
  static constexpr Saves saves = Saves::nothing;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return x + p; }
  template <class T> ISO_HD static T df(T, T) { return T(1); }
};

struct MulNumber {
  static constexpr const char* name = "mul";
  static constexpr const char* formula = "p x";
  static constexpr Saves saves = Saves::nothing;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return x * p; }
  template <class T> ISO_HD static T df(T, T p) { return p; }
};

struct DivNumber {
  static constexpr const char* name = "div";
  static constexpr const char* formula = "x/p";
  static constexpr Saves saves = Saves::nothing;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return x / p; }
  template <class T> ISO_HD static T df(T, T p) { return 1 / p; }
};

struct NumberSub {
  static constexpr const char* name = "sub";
  static constexpr const char* formula = "p - x";
  static constexpr Saves saves = Saves::nothing;
  static constexpr double lo = -3, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return p - x; }
  template <class T> ISO_HD static T df(T, T) { return T(-1); }
};

struct NumberDiv {
  static constexpr const char* name = "div";
  static constexpr const char* formula = "p/x";
  static constexpr Saves saves = Saves::input;
  static constexpr double lo = 0.4, hi = 3;
  template <class T> ISO_HD static T f(T x, T p) { return p / x; }
  template <class T> ISO_HD static T df(T x, T p) { return -(p / x) / x; }  // x * x may be 0
};

template <class... Ops> struct List { static constexpr int size = sizeof...(Ops); };

using Unary = List<Neg, Abs, Sign, Floor, Ceil, Round, Exp, Exp2, Expm1, Log, Log2, Log1p, Sqrt, Rsqrt, Square,
                   Reciprocal, Sin, Cos, Tanh, Sigmoid, Relu, LeakyRelu, Gelu, GeluTanh, Silu, Softplus, Erf, Clamp,
                   PowNumber, AddNumber, MulNumber, DivNumber, NumberSub, NumberDiv>;
using Binary = List<Add, Sub, Mul, Div, Minimum, Maximum, Pow, Remainder>;
using Comparison = List<Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr>;

// Position of Op in a list, the index in kernel tables.
template <class Op, class... Ops> constexpr int index_in(List<Ops...>) {
  constexpr bool same[] = {std::is_same_v<Op, Ops>...};
  for (int i = 0; i < static_cast<int>(sizeof...(Ops)); ++i)
    if (same[i]) return i;
  return -1;
}

// f and df of a unary op whose numbers are in an array.
template <class Op, class T> ISO_HD T value(T x, const T* p) {
  if constexpr (requires { Op::f(x, x, x); })
    return Op::f(x, p[0], p[1]);
  else if constexpr (requires { Op::f(x, x); })
    return Op::f(x, p[0]);
  else
    return Op::f(x);
}
template <class Op, class T> ISO_HD T derivative(T saved, const T* p) {
  if constexpr (requires { Op::df(saved, saved, saved); })
    return Op::df(saved, p[0], p[1]);
  else if constexpr (requires { Op::df(saved, saved); })
    return Op::df(saved, p[0]);
  else
    return Op::df(saved);
}
// True if a slope of 0 stops every gradient, infinite and NaN ones too: in gates, and in x^0, which is constant.
template <class Op, class T> ISO_HD bool closes([[maybe_unused]] const T* p) {
  if constexpr (std::is_same_v<Op, PowNumber>) return p[0] == 0;
  return requires { Op::gate; };
}
// The gradient with respect to x from the gradient g with respect to y.
template <class Op, class T> ISO_HD T gradient(T g, T saved, const T* p) {
  const T slope = derivative<Op>(saved, p);
  return closes<Op>(p) && slope == 0 ? T(0) : g * slope;
}

}  // namespace isonorm::ops
