// Threads that the library starts.
#pragma once

#include <thread>
#include <utility>

namespace isonorm {

// Lets the calling thread, which the library has started, run on all cores that this process may use. A new thread has the mask of
// the thread that starts it, which libgomp or Open MPI may have pinned to one core. Masks of a user's threads stay as they are.
void run_on_all_cores() noexcept;

// A thread that calls f() on all cores that this process may use.
template <class F> std::thread start_thread(F f) {
  return std::thread([f = std::move(f)]() mutable {
    run_on_all_cores();
    f();
  });
}

}  // namespace isonorm
