// Runs independent tasks in parallel, each on one thread.
#pragma once

#include <atomic>

#include "core/system/parallel.h"

namespace isonorm::equivalence {

// Calls f(i) for every i below `count`, distributed over threads. Kernels inside f use one thread. After a call has
// thrown, no other begins. Throws the exception of the first one that threw.
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
