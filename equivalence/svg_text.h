// What the drawings share: text put together from numbers.
#pragma once

#include <cstdlib>
#include <string>

#include "equivalence/printed.h"

namespace isonorm::equivalence {

template <class... A> void append_printed(std::string& out, const char* format, A... a) {
  out += printed(format, a...);
}

// "10⁻¹⁵".
inline std::string power_of_ten(int exponent) {
  static const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  std::string result = exponent < 0 ? "10⁻" : "10";
  for (char c : std::to_string(std::abs(exponent))) result += kDigits[c - '0'];
  return result;
}

}  // namespace isonorm::equivalence
