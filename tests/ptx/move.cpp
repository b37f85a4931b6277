// Moves and conversions (9.7.9.3, 9.7.9.20, 9.7.9.21).
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ptx/lanes.h"

namespace isonorm::ptx {
namespace {

uint64_t low_bytes(uint64_t word, size_t bytes) { return bytes >= 8 ? word : word & ((uint64_t{1} << 8 * bytes) - 1); }

// {a, b} = c
void unpack(Warp& w, const Instruction& in, uint32_t lanes) {
  const std::vector<int>& to = in.operands[0].parts;
  const uint64_t* const from = w.row(in.operands[1].reg);
  const size_t bytes = size_of(in.type) / to.size();
  each(lanes, [&](int i) {
    const uint64_t word = from[i];
    for (size_t k = 0; k < to.size(); ++k) w.row(to[k])[i] = low_bytes(word >> 8 * bytes * k, bytes);
  });
}
// c = {a, b}
void pack(Warp& w, const Instruction& in, uint32_t lanes) {
  const std::vector<int>& from = in.operands[1].parts;
  uint64_t* const to = w.row(in.operands[0].reg);
  const size_t bytes = size_of(in.type) / from.size();
  each(lanes, [&](int i) {
    uint64_t word = 0;
    for (size_t k = 0; k < from.size(); ++k) word |= low_bytes(w.row(from[k])[i], bytes) << 8 * bytes * k;
    to[i] = word;
  });
}
Execute select_move(Instruction& in, Modifiers&) {
  if (in.operands.size() != 2 || in.type == Type::none) return nullptr;
  const Operand &to = in.operands[0], &from = in.operands[1];
  if (to.kind == Operand::Kind::vector && from.kind == Operand::Kind::reg) return to.parts.empty() ? nullptr : unpack;
  if (to.kind == Operand::Kind::reg && from.kind == Operand::Kind::vector) return from.parts.empty() ? nullptr : pack;
  return for_type<bool, uint16_t, uint32_t, uint64_t, float, double>(unsigned_of(in.type), [&]<class T> {
    using Word = std::conditional_t<std::is_same_v<T, float>, uint32_t,
                                    std::conditional_t<std::is_same_v<T, double>, uint64_t, T>>;
    return unary<Word>(in, [](Word a) { return a; });
  });
}

// Generic addresses: global memory has the same addresses, shared memory a window of its own.
Execute select_address(Instruction& in, Modifiers& modifiers) {
  const bool to = modifiers.take("to");
  if (in.type != Type::u64) return nullptr;
  if (in.space == Space::global) return unary<uint64_t>(in, [](uint64_t a) { return a; });
  if (in.space != Space::shared) return nullptr;
  if (to) return unary<uint64_t>(in, [](uint64_t a) { return a - kSharedWindow; });
  return unary<uint64_t>(in, [](uint64_t a) { return a + kSharedWindow; });
}

// Rounds to nearest, ties to even. Every NaN becomes 0x7fff.
uint16_t to_bf16(float x) {
  if (x != x) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A value out of range becomes the nearest integer in range. NaN becomes 0; from f64 to 64 bits it becomes 2^63
// (unsigned) or -2^63 (signed).
template <class To, class From> To to_integer(From x) {
  if (x != x) return sizeof(To) == 8 && sizeof(From) == 8 ? static_cast<To>(uint64_t{1} << 63) : To{0};
  const From low = static_cast<From>(std::numeric_limits<To>::min()),
             beyond = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  return x < low ? std::numeric_limits<To>::min() : x >= beyond ? std::numeric_limits<To>::max() : static_cast<To>(x);
}

struct Nearest {
  template <class T> T operator()(T x) const { return std::nearbyint(x); }
};
struct TowardZero {
  template <class T> T operator()(T x) const { return std::trunc(x); }
};
struct Down {
  template <class T> T operator()(T x) const { return std::floor(x); }
};
struct Up {
  template <class T> T operator()(T x) const { return std::ceil(x); }
};

// Rounds a real number to a whole number of the same type, or converts it to an integer.
template <class From, class Round> Execute to_whole(const Instruction& in) {
  if (in.type == kType<From>) return unary<From>(in, [](From x) { return Round{}(x); });
  return for_type<uint32_t, uint64_t, int32_t, int64_t>(
      in.type, [&]<class To> { return unary<From>(in, [](From x) { return to_integer<To>(Round{}(x)); }); });
}
template <class From> Execute from_real(Instruction& in, Modifiers& modifiers) {
  if (modifiers.take("rni")) return to_whole<From, Nearest>(in);
  if (modifiers.take("rzi")) return to_whole<From, TowardZero>(in);
  if (modifiers.take("rmi")) return to_whole<From, Down>(in);
  if (modifiers.take("rpi")) return to_whole<From, Up>(in);
  if constexpr (std::is_same_v<From, float>) {
    if (in.type == Type::f64) return unary<float>(in, [](float x) { return double{x}; });
    if (!modifiers.take("rn")) return nullptr;
    if (in.type == Type::bf16) return unary<float>(in, [](float x) { return to_bf16(x); });
    if (in.type == Type::bf16x2)  // the first operand is the high half
      return binary<float>(in, [](float a, float b) { return uint32_t{to_bf16(a)} << 16 | to_bf16(b); });
  } else {
    if (in.type == Type::f32 && modifiers.take("rn"))
      return unary<double>(in, [](double x) { return static_cast<float>(x); });
  }
  return nullptr;
}
template <class From> Execute from_integer(Instruction& in, Modifiers& modifiers) {
  if (modifiers.take("rn"))
    return for_reals(in.type, [&]<class To> { return unary<From>(in, [](From x) { return static_cast<To>(x); }); });
  return for_integers(in.type, [&]<class To> { return unary<From>(in, [](From x) { return static_cast<To>(x); }); });
}
Execute select_conversion(Instruction& in, Modifiers& modifiers) {
  if (in.source == Type::f32) return from_real<float>(in, modifiers);
  if (in.source == Type::f64) return from_real<double>(in, modifiers);
  return for_type<uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>(
      in.source, [&]<class From> { return from_integer<From>(in, modifiers); });
}

}  // namespace

const Operations& move_operations() {
  static const Operations all{{"mov", select_move}, {"cvt", select_conversion}, {"cvta", select_address}};
  return all;
}

}  // namespace isonorm::ptx
