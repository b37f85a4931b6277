// Runs a function in a process of its own, which it may crash, and returns its output.
#pragma once

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/sanitizers.h"

namespace isonorm::test {

// The output of f to stderr; for a report of a sanitizer, only the line that names the error. "signal 11" is appended
// if this signal ended the process.
inline std::string said_by(const std::function<void()>& f) {
  int ends[2];
  if (pipe(ends)) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);  // the test program would report its crash there
    close(ends[0]);
    if (!gpu::emulated::kAddressChecks) std::signal(SIGSEGV, SIG_DFL);  // without the test program's own report
    gpu::emulated::watch_accesses();
    f();
    std::fflush(stderr);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;) said.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  for (const char* report : {"ERROR: AddressSanitizer: ", "WARNING: ThreadSanitizer: ", "runtime error: "})
    if (const size_t at = said.find(report); at != std::string::npos) return said.substr(at, said.find('\n', at) - at);
  return WIFSIGNALED(status) ? said + "signal " + std::to_string(WTERMSIG(status)) : said;
}

}  // namespace isonorm::test
