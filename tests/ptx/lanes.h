// Instructions that compute each lane's result from its own registers.
#pragma once

#include <bit>

#include "tests/ptx/operations.h"
#include "tests/ptx/warp.h"

namespace isonorm::ptx {

// Calls f(lane) for each lane of a mask.
template <class F> void each(uint32_t lanes, F f) {
  if (lanes == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) f(i);
  } else {
    for (; lanes; lanes &= lanes - 1) f(std::countr_zero(lanes));
  }
}

inline bool are_registers(const Instruction& in, size_t count) {
  if (in.operands.size() != count) return false;
  for (const Operand& o : in.operands)
    if (o.kind != Operand::Kind::reg) return false;
  return true;
}

// Instructions "d, a", "d, a, b" and "d, a, b, c" that write f(a), f(a, b) and f(a, b, c). a has type A, b B, c C.
// F is a lambda without captures. Null: the instruction has other operands.
template <class A, class F> Execute unary(const Instruction& instruction, F) {
  if (!are_registers(instruction, 2)) return nullptr;
  return [](Warp& w, const Instruction& in, uint32_t lanes) {
    uint64_t* const d = w.row(in.operands[0].reg);
    const uint64_t* const a = w.row(in.operands[1].reg);
    each(lanes, [&](int i) { d[i] = put(F{}(get<A>(a[i]))); });
  };
}
template <class A, class B = A, class F> Execute binary(const Instruction& instruction, F) {
  if (!are_registers(instruction, 3)) return nullptr;
  return [](Warp& w, const Instruction& in, uint32_t lanes) {
    uint64_t* const d = w.row(in.operands[0].reg);
    const uint64_t *const a = w.row(in.operands[1].reg), *const b = w.row(in.operands[2].reg);
    each(lanes, [&](int i) { d[i] = put(F{}(get<A>(a[i]), get<B>(b[i]))); });
  };
}
template <class A, class B = A, class C = A, class F> Execute ternary(const Instruction& instruction, F) {
  if (!are_registers(instruction, 4)) return nullptr;
  return [](Warp& w, const Instruction& in, uint32_t lanes) {
    uint64_t* const d = w.row(in.operands[0].reg);
    const uint64_t *const a = w.row(in.operands[1].reg), *const b = w.row(in.operands[2].reg),
                          *const c = w.row(in.operands[3].reg);
    each(lanes, [&](int i) { d[i] = put(F{}(get<A>(a[i]), get<B>(b[i]), get<C>(c[i]))); });
  };
}

// Returns select<T>() for the T in the list that computes with `type`. Null if there is none.
template <class... T, class F> Execute for_type(Type type, F select) {
  Execute found = nullptr;
  ((type == kType<T> ? void(found = select.template operator()<T>()) : void()), ...);
  return found;
}
template <class F> Execute for_integers(Type type, F select) {
  return for_type<uint16_t, uint32_t, uint64_t, int16_t, int32_t, int64_t>(type, select);
}
// Computes with unsigned integers, for signed integers and bits, too.
template <class F> Execute for_bits(Type type, F select) {
  return for_type<uint16_t, uint32_t, uint64_t>(unsigned_of(type), select);
}
template <class F> Execute for_reals(Type type, F select) { return for_type<float, double>(type, select); }

}  // namespace isonorm::ptx
