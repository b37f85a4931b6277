#include "core/system/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/printed.h"

namespace isonorm {
namespace {

std::string own_group() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return {};
}

}  // namespace

double cores_of_group(const std::string& root, std::string path) {
  double least = 0, quota = 0, period = 0;
  while (true) {
    std::ifstream file(root + path + "/cpu.max");  // "max 100000" or "150000 100000", in microseconds
    std::string line;
    if (std::getline(file, line) && read_numbers(line, quota, period) && quota > 0 && period > 0 &&
        (least == 0 || quota / period < least))
      least = quota / period;
    const size_t last = path.rfind('/');
    if (last == path.npos) return least;
    path.resize(last);
  }
}

int usable_cores() {
  cpu_set_t set[8];  // 8192 of them
  const int cores = sched_getaffinity(0, sizeof set, set) == 0 ? CPU_COUNT_S(sizeof set, set) : 1;
  const double allowed = std::ceil(cores_of_group("/sys/fs/cgroup", own_group()));
  return allowed > 0 && allowed < cores ? static_cast<int>(allowed) : cores;
}

}  // namespace isonorm
