// The process that started a thread. A child of fork() has a copy of the parent's memory, but none of its other
// threads.
#pragma once

#include <sys/types.h>

namespace isonorm {

// An object with threads keeps a HomeProcess, made when its first thread starts. In a child of that process the threads
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
