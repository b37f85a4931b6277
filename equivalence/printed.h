// printf into a string.
#pragma once

#include <cstdio>
#include <cstdint>
#include <string>

namespace isonorm::equivalence {

// At most 255 characters of it.
template <class... A> std::string printed(const char* format, A... a) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, a...);
  return buffer;
}

// "1 seed", "3 seeds".
inline std::string plural(int64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace isonorm::equivalence
