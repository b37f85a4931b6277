// The process that started a thread. A child of fork() has a copy of the parent's memory, and none of its other threads.
#pragma once

#include <unistd.h>

#include "core/error.h"

namespace isonorm {

// Who has threads keeps one of these, made when the first thread starts. In a child nobody will ever answer, nor free what a thread had locked:
// so the child may neither wait for the threads, nor destroy what they share with their owner (it is left behind).
class HomeProcess {
 public:
  // Whether this process is a child (or a child's child) of the one that made this.
  bool is_elsewhere() const { return getpid() != pid_; }
  // Throws (invalid), with `what` before the message, if it is.
  void check_here(const char* what) const {
    check(!is_elsewhere(), what, ": its threads are in process ", pid_, ", this is process ", getpid(),
          ", a child made by fork(): make it anew in the child");
  }

 private:
  pid_t pid_ = getpid();
};

}  // namespace isonorm
