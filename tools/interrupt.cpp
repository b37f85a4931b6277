#include "tools/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "io/unfinished.h"

namespace isonorm::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU, SIGUSR1, SIGUSR2};

std::atomic<bool> catching = false, flag = false;
std::atomic<int64_t> asked_to_end = 0;  // time in ns; 0: not yet
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);  // signal handlers set them

// timeout(1) sends its signal to the process and to its group. Signals within this time are one request.
constexpr int64_t kOneRequest = 200'000'000;  // ns

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void take_signal(int signal) {
  if (signal == SIGPIPE && !catching) return;  // the write fails
  if (catching) {
    // SIGPIPE and SIGXCPU come again while the work ends. SIGUSR1 and SIGUSR2 announce a SIGTERM.
    const bool may_wait = signal != SIGINT && signal != SIGTERM && signal != SIGHUP;
    flag = true;
    int64_t first = 0;
    if (may_wait || asked_to_end.compare_exchange_strong(first, now()) || now() - first < kOneRequest) return;
  }
  io::Unfinished::remove_all();
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // ends the process when this handler returns
}

void install(int signal, bool ignored_too) {
  struct sigaction action = {}, before = {};
  action.sa_handler = take_signal;
  action.sa_flags = SA_RESTART;  // a read of data continues
  sigaction(signal, nullptr, &before);
  if (ignored_too || before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

void end_clean_on_signals() {
  for (const int signal : kSignals) install(signal, false);
}

void catch_interrupt() {
  catching = true;
  for (const int signal : kSignals) install(signal, signal != SIGHUP);
}

bool interrupted() { return flag; }

}  // namespace isonorm::tools
