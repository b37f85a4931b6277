#include "tools/interrupt.h"

#include <csignal>

namespace isonorm::tools {
namespace {

volatile std::sig_atomic_t flag = 0;

}  // namespace

void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { flag = 1; };
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // a read of data goes on; the next SIGINT has its default effect
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace isonorm::tools
