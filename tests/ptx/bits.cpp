// Logic and shifts (9.7.8), fields of bits (9.7.1), bytes of two words (9.7.9.7).
#include "tests/ptx/lanes.h"

namespace isonorm::ptx {
namespace {

// Logic works on predicates and on words.
template <class F> Execute for_logic(Type type, F select) {
  return for_type<bool, uint16_t, uint32_t, uint64_t>(unsigned_of(type), select);
}

Execute conjunction(Instruction& in, Modifiers&) {
  return for_logic(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return static_cast<T>(a & b); }); });
}
Execute disjunction(Instruction& in, Modifiers&) {
  return for_logic(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return static_cast<T>(a | b); }); });
}
Execute exclusive(Instruction& in, Modifiers&) {
  return for_logic(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return static_cast<T>(a ^ b); }); });
}
Execute complement(Instruction& in, Modifiers&) {
  return for_logic(in.type, [&]<class T> {
    return unary<T>(in, [](T a) {
      if constexpr (std::is_same_v<T, bool>)
        return !a;
      else
        return static_cast<T>(~a);
    });
  });
}

// A shift by the type's width or more leaves zeros; to the right, a signed value leaves copies of its sign.
Execute shift_left(Instruction& in, Modifiers&) {
  return for_bits(in.type, [&]<class T> {
    return binary<T, uint32_t>(
        in, [](T a, uint32_t by) { return by < 8 * sizeof(T) ? static_cast<T>(uint64_t{a} << by) : T{0}; });
  });
}
Execute shift_right(Instruction& in, Modifiers&) {
  const Type type = is_signed(in.type) ? in.type : unsigned_of(in.type);
  return for_integers(type, [&]<class T> {
    return binary<T, uint32_t>(in, [](T a, uint32_t by) {
      if (by >= 8 * sizeof(T)) return static_cast<T>(a < T{0} ? -1 : 0);
      return static_cast<T>(a >> by);
    });
  });
}

// bfi d, a, b, at, length: b, whose `length` bits from bit `at` on are replaced by the low bits of a.
Execute insert_field(Instruction& instruction, Modifiers&) {
  if (!are_registers(instruction, 5)) return nullptr;
  return for_type<uint32_t, uint64_t>(unsigned_of(instruction.type), [&]<class T>() -> Execute {
    return [](Warp& w, const Instruction& in, uint32_t lanes) {
      uint64_t* const d = w.row(in.operands[0].reg);
      const uint64_t *const a = w.row(in.operands[1].reg), *const b = w.row(in.operands[2].reg);
      const uint64_t *const at = w.row(in.operands[3].reg), *const length = w.row(in.operands[4].reg);
      each(lanes, [&](int i) {
        const unsigned from = get<uint8_t>(at[i]), bits = get<uint8_t>(length[i]);
        const T field = bits >= 8 * sizeof(T) ? static_cast<T>(-1) : static_cast<T>((T{1} << bits) - 1);
        const T mask = from >= 8 * sizeof(T) ? T{0} : static_cast<T>(field << from);
        const T shifted = mask ? static_cast<T>(get<T>(a[i]) << from) : T{0};
        d[i] = put<T>(static_cast<T>((get<T>(b[i]) & ~mask) | (shifted & mask)));
      });
    };
  });
}

// prmt d, a, b, selector: four bytes of b:a. Four bits of the selector choose each; bit 3 repeats the byte's sign.
Execute permute(Instruction& in, Modifiers&) {
  if (in.type != Type::b32) return nullptr;
  return ternary<uint32_t>(in, [](uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t d = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t from = selector >> 4 * k & 15;
      const auto byte = static_cast<uint8_t>(bytes >> 8 * (from & 7));
      d |= uint32_t{from & 8 ? static_cast<uint8_t>(byte & 0x80 ? 0xff : 0) : byte} << 8 * k;
    }
    return d;
  });
}

}  // namespace

const Operations& bit_operations() {
  static const Operations all{{"and", conjunction}, {"or", disjunction},  {"xor", exclusive},    {"not", complement},
                              {"shl", shift_left},  {"shr", shift_right}, {"bfi", insert_field}, {"prmt", permute}};
  return all;
}

}  // namespace isonorm::ptx
