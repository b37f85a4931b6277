// Resource limits under which the program cannot start: it ends with a line and an exit code before the libraries
// start.
#include "tools/limits.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "tools/verb.h"

namespace isonorm::tools {
namespace {

constexpr rlim_t kStack = 256 << 10;  // it holds buffers of 64 KB

[[noreturn]] void refuse(std::string_view line) {  // without stdio, which is also a library
  if (::write(2, line.data(), line.size()) < 0) _exit(kNoResources);
  _exit(kNoResources);
}

void no_memory(int) { refuse("isonorm: no memory for the libraries that it is linked with (ulimit -v)\n"); }

void watch(bool on) {
  struct sigaction act = {};
  act.sa_handler = on ? no_memory : SIG_DFL;
  sigaction(SIGPROF, &act, nullptr);
  const itimerval seconds = {{}, {on ? 2 : 0, 0}};  // CPU time; a start takes some hundredths of a second
  setitimer(ITIMER_PROF, &seconds, nullptr);
}

void before_the_libraries() {
  rlimit stack;
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kStack)
    refuse("isonorm: the stack is too small: 256 KB are needed (ulimit -s)\n");
  watch(true);
}

// If OpenBLAS gets no memory for its buffers, its constructor asks again forever. This function runs before any
// library's constructors.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first)() = before_the_libraries;

}  // namespace

void libraries_have_started() { watch(false); }

}  // namespace isonorm::tools
