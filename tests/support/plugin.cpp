// A library that is loaded, works in parallel and is unloaded; see core/parallel_test.cpp.
#include <atomic>

#include "core/system/parallel.h"

extern "C" int blocks_done() {
  isonorm::set_num_threads(3);
  std::atomic<int> done = 0;
  isonorm::parallel_for(9, 1, [&](int64_t, int64_t) { ++done; });
  return done;
}
