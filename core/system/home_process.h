// The process that started a thread. A child of fork() has a copy of the parent's memory, and none of its other threads.
#pragma once

#include <sys/types.h>

namespace isonorm {

// An object with threads keeps a HomeProcess, made when its first thread starts. In a child of that process the threads never answer, and
// locks that they held are never released. So the child must not wait for them, nor destroy their mutexes and condition variables: these leak.
class HomeProcess {
 public:
  HomeProcess();
  // Whether this process is a child (or a child's child) of the one that made this.
  bool is_elsewhere() const;
  // Throws (invalid), with `what` before the message, if it is.
  void check_here(const char* what) const;

 private:
  pid_t pid_;
};

}  // namespace isonorm
