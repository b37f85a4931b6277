// Internal: shorthands for rows of ports.
#pragma once

#include "exchange/hub/port.h"

namespace isonorm::hub {

inline const std::vector<std::string_view> kWeight = {".weight"}, kBoth = {".weight", ".bias"};
inline const std::vector<Port::Value> kFlag = {{"false", "false"}, {"true", "true"}};

template <class T> std::vector<T> operator+(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace isonorm::hub
