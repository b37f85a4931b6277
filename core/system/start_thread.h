// Starts the library's threads.
#pragma once

#include <thread>
#include <utility>

namespace isonorm {

// Lets the calling thread, which the library has started, run on all cores that this process may use. A new thread
// inherits the mask of the thread that starts it, and libgomp or Open MPI may have pinned that thread to one core. The
// masks of the user's own threads do not change.
void run_on_all_cores() noexcept;

// Starts a thread that calls f() and may run on all cores of this process.
template <class F> std::thread start_thread(F f) {
  return std::thread([f = std::move(f)]() mutable {
    run_on_all_cores();
    f();
  });
}

}  // namespace isonorm
