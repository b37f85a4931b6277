// Profiles of time: every call of a kernel with its time, the bytes of its tensors, its floating-point operations and
// the module that called it.
//
//   ISONORM_PROFILE=1 program           prints tables on stderr when the program ends
//   ISONORM_PROFILE=trace.json program  also writes the calls as a trace for ui.perfetto.dev or chrome://tracing;
//                                       exit code 4 if the trace cannot be written
//
// To profile a part of a program: profile::start(), then std::puts(profile::tables(profile::stop()).c_str()).
//
// A call on a GPU has two times: the host's, for submitting the work, and the device's, for executing it later.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace isonorm::profile {

struct Call {
  const char* kernel;
  std::string module;     // path of the module, empty outside of every module
  bool backward;          // from a backward rule
  int thread;             // the calling thread, counted from 0
  double start, seconds;  // of the host; start: since profile::start()
  int64_t bytes;          // read and written by the kernel; a tensor that is both read and written counts twice
  int64_t flops;          // 0 if the kernel does not report them
  Device device = kCpu;
  double device_start = 0, device_seconds = 0;  // on a GPU, on the same clock as `start`
};

struct Profile {
  std::vector<Call> calls;
  double seconds = 0;  // from start() to stop()
};

// Drops earlier records and records from now on, in all threads. Recording costs some 200 ns per call.
void start();
// Ends recording. Waits once for each GPU that was called. Throws if recording was not started.
Profile stop();

// Two tables, by kernel and by module (block numbers become '*'), sorted by time, with calls, time, share of all time,
// GB/s and GFLOP/s. The time between kernels has a line of its own. If a GPU was called, times are of the device that
// ran the call, and one more column has the host's times.
std::string tables(const Profile& profile);
// Writes the trace event format of Chrome
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): one complete event per call, on
// the host's threads (process 1). A call of a GPU has one more event on its device (process 2 + index), of category
// "device". Throws if the file cannot be written.
void write_trace(const std::string& path, const Profile& profile);

// The clock of GPUs; start_cuda() sets it. A mark is a point in a device's queue of work, after all work given so far.
using Mark = std::shared_ptr<const void>;
struct DeviceClock {
  Mark (*mark)(Device device);
  // Seconds from one mark of a device to a later one. Waits for both.
  double (*seconds)(const Mark& from, const Mark& to);
};
inline constinit const DeviceClock* device_clock = nullptr;

namespace detail {
inline std::atomic<bool> recording{false};
}
inline bool recording() { return detail::recording.load(std::memory_order_relaxed); }

// Records the time from construction to destruction as one call.
class Timer {
 public:
  Timer(const char* kernel, int64_t bytes, int64_t flops, Device device = kCpu);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  Call call_;
  Mark begin_;  // defined on a GPU only
};

// While it lives, calls of this thread are attributed to a backward rule and to the module `path`.
class Backward {
 public:
  [[nodiscard]] explicit Backward(const std::string& path);
  ~Backward();
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;
};

// For code that counts a slot's requests to a device: the name of the innermost slot that the calling thread is
// running; "" outside of all slots, and while no profile is recorded.
const char* running_kernel();

}  // namespace isonorm::profile
