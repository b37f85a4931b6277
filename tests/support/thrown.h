// What a call throws, as text.
#pragma once

#include <string>

#include "core/error.h"

namespace isonorm::test {

// What f throws; "" where it throws nothing.
template <class F> std::string thrown(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace isonorm::test
