// Starts the library's threads, and knows the process that they are in.
#pragma once

#include <sys/types.h>

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

// The process that started a thread. A child of fork() has a copy of the parent's memory, but none of its other
// threads.
//
// An object with threads keeps a HomeProcess, made when its first thread starts. In a child of this process the threads
// never answer, and their locks are never released. The child must therefore not wait for the threads, and must not
// destroy their mutexes and condition variables: these leak.
class HomeProcess {
 public:
  HomeProcess();
  // True in a child, or a child's child, of the process that made this object.
  bool is_elsewhere() const;
  // Throws (invalid), with `what` before the message, if is_elsewhere().
  void check_here(const char* what) const;

 private:
  pid_t pid_;
};

}  // namespace isonorm
