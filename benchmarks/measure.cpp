#include "benchmarks/measure.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace isonorm::bench {
namespace {

int64_t status_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stoll(line.substr(line.find(':') + 1)) * 1024;
  return 0;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t peak_bytes() { return status_bytes("VmHWM:"); }

}  // namespace isonorm::bench
