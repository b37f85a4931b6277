#include "core/system/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/printed.h"

namespace isonorm {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The cores that the group in `folder` allows; 0: no limit. Quota and period are in microseconds.
double cores_of_group(const std::string& folder) {
  const std::string v2 = first_line(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  const std::string v1 =
      first_line(folder + "/cpu.cfs_quota_us") + ' ' + first_line(folder + "/cpu.cfs_period_us");  // quota -1: no limit
  double quota = 0, period = 0;
  return read_numbers(v2.empty() ? v1 : v2, quota, period) && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cores_of_groups(const std::string& root) {
  double least = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  // A line is "0::/a/b" in v2, "4:cpu,cpuacct:/a/b" in v1.
  for (std::string number, controllers, path;
       getline(groups, number, ':') && getline(groups, controllers, ':') && getline(groups, path);) {
    const bool v1 = (',' + controllers + ',').find(",cpu,") != std::string::npos;
    if (!v1 && !controllers.empty()) continue;
    const std::string folder = root + (v1 ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup");
    for (size_t last = path.size(); last != path.npos; last = path.rfind('/')) {  // the group and those above it
      path.resize(last);
      const double cores = cores_of_group(folder + path);
      if (cores > 0 && (least == 0 || cores < least)) least = cores;
    }
  }
  return least;
}

int usable_cores() {
  cpu_set_t set[8];  // 8192 of them
  const int cores = sched_getaffinity(0, sizeof set, set) == 0 ? CPU_COUNT_S(sizeof set, set) : 1;
  const double allowed = std::ceil(cores_of_groups(""));
  return allowed > 0 && allowed < cores ? static_cast<int>(allowed) : cores;
}

}  // namespace isonorm
