// Internal: the threads that help with parallel regions. All user threads share them.
//
// Each worker waits in its own slot: it spins for some microseconds and then sleeps. The thread that opens a region
// claims free workers, works itself, and at the end takes back the workers that have not begun. Nobody waits for a
// thread that the system does not run.
#pragma once

#include <cstdint>

#include "core/system/parallel.h"

namespace isonorm {

// The workers that help with one region. The constructor claims free ones among the first `among`, `wanted` at most,
// and lets each call job(context, index) with an index of 1, 2, ...; `job` must not throw. Threads are started when
// needed. If the system refuses one, there are fewer helpers. The destructor returns when no worker is in `job` any
// more.
class Helpers {
 public:
  Helpers(int wanted, int among, void (*job)(void*, int), void* context);
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

 private:
  struct Claim {
    int slot;
    uint32_t state;
  };
  int count_ = 0;
  Claim claims_[kMostThreads];
};

// After the system has refused a thread, the pool does not grow. This lets it ask the system again.
void retry_refused_workers();

}  // namespace isonorm
