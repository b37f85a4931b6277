// Arithmetic of f32 and f64 (9.7.3), rounded to nearest unless the instruction says otherwise. Approximations (approx)
// are rounded correctly: a device may give any result within their bounds.
#include <cfenv>
#include <cmath>

#include "tests/ptx/lanes.h"

namespace isonorm::ptx {
namespace {

// add and add.rn differ only for compilers: the second is never contracted.
Execute add(Instruction& in, Modifiers& modifiers) {
  modifiers.take("rn");
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return a + b; }); });
}
Execute subtract(Instruction& in, Modifiers& modifiers) {
  modifiers.take("rn");
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return a - b; }); });
}
Execute multiply(Instruction& in, Modifiers& modifiers) {
  modifiers.take("rn");
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return a * b; }); });
}

float fma_toward_zero(float a, float b, float c) {
  const int before = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  const volatile float x = a, y = b, z = c;
  const volatile float result = std::fma(x, y, z);
  std::fesetround(before);
  return result;
}
Execute fused_multiply_add(Instruction& in, Modifiers& modifiers) {
  if (in.type == Type::f32 && modifiers.take("rz"))
    return ternary<float>(in, [](float a, float b, float c) { return fma_toward_zero(a, b, c); });
  if (!modifiers.take("rn")) return nullptr;
  return for_reals(in.type, [&]<class T> { return ternary<T>(in, [](T a, T b, T c) { return std::fma(a, b, c); }); });
}

Execute divide(Instruction& in, Modifiers& modifiers) {
  if (!modifiers.take("rn") && !(in.type == Type::f32 && modifiers.take("approx"))) return nullptr;
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return a / b; }); });
}
Execute square_root(Instruction& in, Modifiers& modifiers) {
  if (!modifiers.take("rn")) return nullptr;
  return for_reals(in.type, [&]<class T> { return unary<T>(in, [](T a) { return std::sqrt(a); }); });
}

// ftz: subnormal inputs and results are zeros of their sign.
template <class T> T flushed(T x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x; }

Execute reciprocal(Instruction& in, Modifiers& modifiers) {
  if (modifiers.take("rn")) return for_reals(in.type, [&]<class T> { return unary<T>(in, [](T a) { return 1 / a; }); });
  if (!modifiers.take("approx") || !modifiers.take("ftz")) return nullptr;
  if (in.type == Type::f32) return unary<float>(in, [](float a) { return flushed(1 / flushed(a)); });
  return unary<double>(in, [](double a) {  // its low 32 bits are zero (9.7.3.14)
    return get<double>(put(flushed(1 / flushed(a))) >> 32 << 32);
  });
}
Execute power_of_two(Instruction& in, Modifiers& modifiers) {
  if (in.type != Type::f32 || !modifiers.take("approx") || !modifiers.take("ftz")) return nullptr;
  return unary<float>(in, [](float a) { return flushed(std::exp2(flushed(a))); });
}

Execute negate(Instruction& in, Modifiers&) {
  return for_reals(in.type, [&]<class T> { return unary<T>(in, [](T a) { return -a; }); });
}
Execute magnitude(Instruction& in, Modifiers&) {
  return for_reals(in.type, [&]<class T> { return unary<T>(in, [](T a) { return std::fabs(a); }); });
}
Execute copy_sign(Instruction& in, Modifiers&) {  // the first operand's sign, the second's size
  return for_reals(in.type,
                   [&]<class T> { return binary<T>(in, [](T sign, T size) { return std::copysign(size, sign); }); });
}

// If one operand is NaN, the other one. -0 is less than +0 (9.7.3.11).
template <class T> T smaller(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
Execute minimum(Instruction& in, Modifiers&) {
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return smaller(a, b); }); });
}
Execute maximum(Instruction& in, Modifiers&) {
  return for_reals(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return -smaller(-a, -b); }); });
}

}  // namespace

const Operations& real_operations() {
  static const Operations all{
      {"add", add},    {"sub", subtract},     {"mul", multiply},       {"fma", fused_multiply_add},
      {"div", divide}, {"sqrt", square_root}, {"rcp", reciprocal},     {"ex2", power_of_two},
      {"neg", negate}, {"abs", magnitude},    {"copysign", copy_sign}, {"min", minimum},
      {"max", maximum}};
  return all;
}

}  // namespace isonorm::ptx
