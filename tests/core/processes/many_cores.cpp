// A program that is linked with this file sees a machine with 2048 cores and may use cores 0, 1 and 2000.
#include <sched.h>

#include <cerrno>
#include <cstring>

extern "C" int sched_getaffinity(pid_t, size_t bytes, cpu_set_t* set) {
  if (bytes < 2048 / 8) {
    errno = EINVAL;
    return -1;
  }
  std::memset(set, 0, bytes);
  constexpr size_t cores[] = {0, 1, 2000};
  for (const size_t core : cores) CPU_SET_S(core, bytes, set);
  return 0;
}
