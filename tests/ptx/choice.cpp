// Comparison and selection (9.7.5, 9.7.6).
#include "tests/ptx/lanes.h"

namespace isonorm::ptx {
namespace {

template <class T> bool is_nan(T x) { return x != x; }

// A comparison with NaN is false, with suffix u (unordered) true. lo, ls, hi, hs are lt, le, gt, ge of unsigned
// integers.
template <class T> Execute comparison(const Instruction& in, Modifiers& modifiers) {
  if (modifiers.take("eq")) return binary<T>(in, [](T a, T b) { return a == b; });
  if (modifiers.take("ne")) return binary<T>(in, [](T a, T b) { return a != b && !is_nan(a) && !is_nan(b); });
  if (modifiers.take("lt") || modifiers.take("lo")) return binary<T>(in, [](T a, T b) { return a < b; });
  if (modifiers.take("le") || modifiers.take("ls")) return binary<T>(in, [](T a, T b) { return a <= b; });
  if (modifiers.take("gt") || modifiers.take("hi")) return binary<T>(in, [](T a, T b) { return a > b; });
  if (modifiers.take("ge") || modifiers.take("hs")) return binary<T>(in, [](T a, T b) { return a >= b; });
  if (modifiers.take("equ")) return binary<T>(in, [](T a, T b) { return a == b || is_nan(a) || is_nan(b); });
  if (modifiers.take("neu")) return binary<T>(in, [](T a, T b) { return a != b; });
  if (modifiers.take("ltu")) return binary<T>(in, [](T a, T b) { return !(a >= b); });
  if (modifiers.take("leu")) return binary<T>(in, [](T a, T b) { return !(a > b); });
  if (modifiers.take("gtu")) return binary<T>(in, [](T a, T b) { return !(a <= b); });
  if (modifiers.take("geu")) return binary<T>(in, [](T a, T b) { return !(a < b); });
  if (modifiers.take("num")) return binary<T>(in, [](T a, T b) { return !is_nan(a) && !is_nan(b); });
  if (modifiers.take("nan")) return binary<T>(in, [](T a, T b) { return is_nan(a) || is_nan(b); });
  return nullptr;
}

Execute set_predicate(Instruction& in, Modifiers& modifiers) {
  const Type type = is_signed(in.type) ? in.type : unsigned_of(in.type);
  return for_type<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t, float, double>(
      type, [&]<class T> { return comparison<T>(in, modifiers); });
}

Execute choose(Instruction& in, Modifiers&) {
  if (in.type == Type::none) return nullptr;
  return ternary<uint64_t, uint64_t, bool>(in, [](uint64_t a, uint64_t b, bool first) { return first ? a : b; });
}

}  // namespace

const Operations& choice_operations() {
  static const Operations all{{"setp", set_predicate}, {"selp", choose}};
  return all;
}

}  // namespace isonorm::ptx
