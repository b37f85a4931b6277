#include "tools/interrupt.h"

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace isonorm::tools {
namespace {

std::atomic<bool> flag = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a handler sets it

void set_flag(int) { flag = true; }

}  // namespace

void catch_interrupt() {
  struct sigaction action = {}, before = {};
  action.sa_handler = set_flag;
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // a read of data goes on; the next has its default effect
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(signal, nullptr, &before);
    if (signal != SIGHUP || before.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);  // nohup keeps it ignored
  }
  action.sa_flags = SA_RESTART;  // these come again, on the way to the end, too
  for (int signal : {SIGPIPE, SIGXCPU}) sigaction(signal, &action, nullptr);
}

bool interrupted() { return flag; }

}  // namespace isonorm::tools
