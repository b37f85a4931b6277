// Works of one thread each, side by side.
#pragma once

#include <atomic>

#include "core/system/parallel.h"

namespace isonorm::equivalence {

// Calls f(i) for every i below `count`, which threads share. Kernels inside of f use one thread.
// Once a call has thrown none begins. Throws what the first one did.
template <class F> void share_out(size_t count, const F& f) {
  std::atomic<bool> failed = false;
  parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failed; ++i) try {
        f(static_cast<size_t>(i));
      } catch (...) {
        failed = true;
        throw;
      }
  });
}

}  // namespace isonorm::equivalence
