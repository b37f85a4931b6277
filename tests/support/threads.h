// Sets the number of threads within a scope.
#pragma once

#include "core/system/parallel.h"

namespace isonorm::test {

struct Threads {
  int before = num_threads();
  [[nodiscard]] explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

}  // namespace isonorm::test
