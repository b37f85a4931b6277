// Returns the message of a call's exception.
#pragma once

#include <string>

#include "core/error.h"

namespace isonorm::test {

// The message of the exception that f throws; "" if it throws nothing.
template <class F> std::string thrown(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace isonorm::test
