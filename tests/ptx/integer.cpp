// Integer arithmetic (9.7.1). Overflow wraps around.
#include <algorithm>

#include "tests/ptx/lanes.h"

namespace isonorm::ptx {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;

template <class T> struct WideOf;
template <> struct WideOf<uint16_t> { using type = uint32_t; };
template <> struct WideOf<int16_t> { using type = int32_t; };
template <> struct WideOf<uint32_t> { using type = uint64_t; };
template <> struct WideOf<int32_t> { using type = int64_t; };
__extension__ template <> struct WideOf<uint64_t> { using type = unsigned __int128; };
__extension__ template <> struct WideOf<int64_t> { using type = __int128; };
template <class T> using Wide = typename WideOf<T>::type;

Execute add(Instruction& in, Modifiers&) {
  return for_bits(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return static_cast<T>(a + b); }); });
}
Execute subtract(Instruction& in, Modifiers&) {
  return for_bits(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return static_cast<T>(a - b); }); });
}

// lo: the low half of the product; hi: the high half; wide: the whole product.
Execute multiply(Instruction& in, Modifiers& modifiers) {
  const bool low = modifiers.take("lo"), high = modifiers.take("hi"), wide = modifiers.take("wide");
  if (low + high + wide != 1 || (wide && size_of(in.type) == 8)) return nullptr;
  return for_integers(in.type, [&]<class T> {
    const auto product = [](T a, T b) { return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * b); };
    using Product = decltype(product);
    if (low) return binary<T>(in, [](T a, T b) { return static_cast<Unsigned<T>>(Product{}(a, b)); });
    if (high) return binary<T>(in, [](T a, T b) { return static_cast<Unsigned<T>>(Product{}(a, b) >> 8 * sizeof(T)); });
    return binary<T>(in, [](T a, T b) { return static_cast<uint64_t>(Product{}(a, b)); });
  });
}
Execute multiply_add(Instruction& in, Modifiers& modifiers) {
  const bool low = modifiers.take("lo"), wide = modifiers.take("wide");
  if (low == wide || (wide && size_of(in.type) == 8)) return nullptr;
  return for_integers(in.type, [&]<class T> {
    if (wide)
      return ternary<T, T, uint64_t>(
          in, [](T a, T b, uint64_t c) { return static_cast<uint64_t>(static_cast<Wide<T>>(a) * b) + c; });
    return ternary<T>(in, [](T a, T b, T c) { return static_cast<Unsigned<T>>(static_cast<Wide<T>>(a) * b + c); });
  });
}

// A division by zero has an unspecified result (9.7.1.9), here all ones. The smallest number / -1 wraps around.
Execute divide(Instruction& in, Modifiers&) {
  return for_integers(in.type, [&]<class T> {
    return binary<T>(in, [](T a, T b) -> Unsigned<T> {
      if (b == 0) return static_cast<Unsigned<T>>(-1);
      if (b == static_cast<T>(-1) && std::is_signed_v<T>)
        return static_cast<Unsigned<T>>(0 - static_cast<Unsigned<T>>(a));
      return static_cast<Unsigned<T>>(a / b);
    });
  });
}
Execute remainder(Instruction& in, Modifiers&) {
  return for_integers(in.type, [&]<class T> {
    return binary<T>(in, [](T a, T b) -> Unsigned<T> {
      if (b == 0) return static_cast<Unsigned<T>>(-1);
      if (b == static_cast<T>(-1) && std::is_signed_v<T>) return 0;
      return static_cast<Unsigned<T>>(a % b);
    });
  });
}

Execute negate(Instruction& in, Modifiers&) {
  return for_bits(in.type, [&]<class T> { return unary<T>(in, [](T a) { return static_cast<T>(0 - a); }); });
}
Execute minimum(Instruction& in, Modifiers&) {
  return for_integers(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return std::min(a, b); }); });
}
Execute maximum(Instruction& in, Modifiers&) {
  return for_integers(in.type, [&]<class T> { return binary<T>(in, [](T a, T b) { return std::max(a, b); }); });
}

}  // namespace

const Operations& integer_operations() {
  static const Operations all{{"add", add},          {"sub", subtract}, {"mul", multiply},
                              {"mad", multiply_add}, {"div", divide},   {"rem", remainder},
                              {"neg", negate},       {"min", minimum},  {"max", maximum}};
  return all;
}

}  // namespace isonorm::ptx
