// printf into a string.
#pragma once

#include <cstdio>
#include <string>

namespace isonorm::equivalence {

// At most 255 characters of it.
template <class... A> std::string printed(const char* format, A... a) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, a...);
  return buffer;
}

}  // namespace isonorm::equivalence
