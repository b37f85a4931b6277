// A child process that runs a function.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace isonorm::test {

// How the process ended, as waitpid() says it: 0 where body() came to its end.
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
