#include "core/system/idle.h"

#include <unistd.h>

#include <cstdlib>

namespace isonorm {

void wait_quietly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "2000", 1);  // some microseconds: the usual distance between two parallel loops
  execv("/proc/self/exe", argv);        // returns only where it failed: then the program runs as it was started
}

}  // namespace isonorm
