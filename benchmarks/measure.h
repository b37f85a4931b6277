// Time and memory of this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace isonorm::bench {

// Seconds on the clock that all processes of a machine share (CLOCK_MONOTONIC; Python's time.monotonic()).
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F> double milliseconds(const F& f) {
  const double start = now();
  f();
  return 1e3 * (now() - start);
}

double median(std::vector<double> values);

// Resident memory of this process in bytes: current (VmRSS) and peak (VmHWM).
int64_t resident_bytes();
int64_t peak_bytes();

}  // namespace isonorm::bench
