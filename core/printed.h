// Numbers as text: printf into a string, and how tables, sentences and messages write numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace isonorm {

// At most 255 characters of it.
template <class... A> std::string printed(const char* format, A... a) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, a...);
  return buffer;
}

// "3.1e-15"; "0" for zero, "NaN".
inline std::string scientific(double value) {
  if (std::isnan(value)) return "NaN";
  return value == 0 ? "0" : printed("%.1e", value);
}

// With the fewest digits that read back as the same number: "0.001", "0.12345678901".
inline std::string shortest(double value) {
  std::string digits;
  for (int n = 6; n <= 17; ++n)  // %g leaves zeros at the end away
    if (digits = printed("%.*g", n, value); std::strtod(digits.c_str(), nullptr) == value) break;
  return digits;
}

// "1 seed", "3 seeds".
inline std::string plural(int64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace isonorm
