// Runs a function in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace isonorm::test {

// The child's status from waitpid(); 0 if body() returned.
template <class F> int status_of_child(F body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace isonorm::test
