#include "tests/tools/child.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <chrono>
#include <thread>

#include "core/error.h"

namespace isonorm {
namespace {

[[noreturn]] void become(const std::vector<std::string>& arguments, const ChildOptions& options, int out, int err) {
  if (!options.input.empty()) dup2(open(options.input.c_str(), O_RDONLY), 0);
  dup2(options.close_stdout ? open("/dev/full", O_WRONLY) : out, 1);
  options.close_stderr ? close(2) : dup2(err, 2);
  const rlimit limit{options.file_limit, options.file_limit};
  setrlimit(RLIMIT_FSIZE, &limit);
  unsetenv("COLUMNS");
  for (const std::string& e : options.environment) putenv(const_cast<char*>(e.c_str()));
  std::vector<char*> argv;
  const char* const other = std::getenv("ISONORM_PROGRAM");  // of scripts/mutants
  std::string program = other ? other : ISONORM_PROGRAM;
  argv.push_back(program.data());
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  for (const auto& [resource, bytes] : options.limits) {
    const rlimit limit = {bytes, bytes};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  }
  execv(program.c_str(), argv.data());
  _exit(126);
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, const ChildOptions& options) {
  int out[2], err[2];
  if (options.terminal) {
    const winsize size{40, options.columns, 0, 0};
    check_io(openpty(&out[0], &out[1], nullptr, nullptr, &size) == 0, "openpty failed");
    err[0] = -1, err[1] = out[1];
    if (options.stopped) tcflow(out[1], TCOOFF);
  } else {
    check_io(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "pipe failed");
  }
  const pid_t pid = fork();
  check_io(pid >= 0, "fork failed");
  if (pid == 0) become(arguments, options, out[1], options.stderr_to >= 0 ? options.stderr_to : err[1]);
  const int terminal = options.stopped ? dup(out[1]) : -1;
  close(out[1]);
  if (!options.terminal) close(err[1]);

  ChildResult result;
  std::thread beside;
  if (options.meanwhile)
    beside = std::thread([&] {
      options.meanwhile();
      if (options.stopped) tcflow(terminal, TCOON), close(terminal);
    });
  bool interrupted = options.interrupt_after.empty();
  bool interrupted_when = false;
  pollfd sources[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    const int ready = poll(sources, 2, options.interrupt_when ? 1 : 300000);
    if (!interrupted_when && options.interrupt_when && options.interrupt_when()) {
      interrupted_when = true;
      kill(pid, options.signal);
    }
    if (ready == 0 && options.interrupt_when) continue;
    if (ready <= 0) {
      kill(pid, SIGKILL);
      break;
    }
    for (int i = 0; i < 2; ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(sources[i].fd, buffer, sizeof buffer);
      if (n <= 0)
        sources[i].fd = -1;  // the other end is closed (EIO on a terminal)
      else
        texts[i]->append(buffer, static_cast<size_t>(n));
      if (i == 1 && sources[1].fd >= 0 && !options.hang_up_after.empty() &&
          result.err.find(options.hang_up_after) != std::string::npos) {
        close(err[0]);
        err[0] = sources[1].fd = -1;
      }
      if (!interrupted && texts[i]->find(options.interrupt_after) != std::string::npos) {
        interrupted = true;
        kill(pid, options.signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        kill(pid, options.signal);
      }
    }
  }
  if (beside.joinable()) beside.join();
  close(out[0]);
  if (err[0] >= 0) close(err[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace isonorm
