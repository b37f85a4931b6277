// The process that started a thread. A child of fork() has a copy of the parent's memory, and none of its other threads.
#pragma once

#include <unistd.h>

#include "core/error.h"

namespace isonorm {

// An object with threads keeps a HomeProcess, made when its first thread starts. In a child of that process the threads never answer, and
// locks that they held are never released. So the child must not wait for them, nor destroy their mutexes and condition variables: these leak.
class HomeProcess {
 public:
  // Whether this process is a child (or a child's child) of the one that made this.
  bool is_elsewhere() const { return getpid() != pid_; }
  // Throws (invalid), with `what` before the message, if it is.
  void check_here(const char* what) const {
    check(!is_elsewhere(), what, ": its threads are in process ", pid_, ", this is process ", getpid(),
          ", a child made by fork(): make another one in the child");
  }

 private:
  pid_t pid_ = getpid();
};

}  // namespace isonorm
