// Runs the program under test as a child process and collects what it says.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace isonorm {

struct ChildOptions {
  std::vector<std::string> environment = {};  // "NAME=value", beside the parent's, of which COLUMNS is left out
  std::string input = {};                     // a file that is standard input
  bool terminal = false;                      // stderr and stdout are a pseudo-terminal, collected in `out`
  unsigned short columns = 200;               // its width
  std::string interrupt_after =
      {};  // when this has appeared in out or err, `signal` is sent, twice, as timeout(1) does
  std::function<bool()> interrupt_when = {};  // it is sent when this is true; asked every millisecond
  std::function<void()> meanwhile = {};       // called once, in a thread of its own, while the program runs
  bool stopped = false;                       // the terminal takes no output (Ctrl-S) until `meanwhile` has returned
  int stderr_to = -1;                         // stderr is this descriptor, and is not collected
  int signal = SIGINT;
  std::string hang_up_after = {};                   // nobody reads err any longer when this has appeared in it
  rlim_t file_limit = RLIM_INFINITY;                // RLIMIT_FSIZE, in bytes
  bool close_stderr = false;                        // descriptor 2 is closed
  bool close_stdout = false;                        // stdout is /dev/full: every write fails
  std::vector<std::pair<int, rlim_t>> limits = {};  // RLIMIT_STACK, ... with bytes
};

struct ChildResult {
  int code = -1;  // exit code, or 128 + the signal that ended it
  std::string out, err;
};

ChildResult run_child(const std::vector<std::string>& arguments, const ChildOptions& options = {});

}  // namespace isonorm
