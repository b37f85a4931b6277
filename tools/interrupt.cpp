#include "tools/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace isonorm::tools {
namespace {

volatile std::sig_atomic_t flag = 0;

}  // namespace

void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { flag = 1; };
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // a read of data goes on; the next has its default effect
  for (int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace isonorm::tools
