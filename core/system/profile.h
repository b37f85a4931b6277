// Where the time goes: every call of a kernel with its time, the bytes of its tensors, its floating-point operations
// and the module that asked for it.
//
//   ISONORM_PROFILE=1 program           prints tables on stderr when the program ends
//   ISONORM_PROFILE=trace.json program  also writes the calls as a trace for ui.perfetto.dev or chrome://tracing;
//                                       where it cannot be written the exit code is 4
//
// A call on a GPU has two times: the host's, which gives the work, and the device's, which does it later.
//
// or, around what is of interest, profile::start() and std::puts(profile::tables(profile::stop()).c_str()).
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
  int64_t bytes;          // that the kernel reads and writes; a tensor that it reads and writes counts twice
  int64_t flops;          // 0 where the kernel does not say
  Device device = kCpu;
  double device_start = 0, device_seconds = 0;  // of a GPU, on the same clock as `start`
};

struct Profile {
  std::vector<Call> calls;
  double seconds = 0;  // from start() to stop()
};

// Drops what was recorded so far and records from now on, in all threads. Recording costs some 200 ns per call.
void start();
// Ends recording; waits once for each GPU that was called. Throws where none was started.
Profile stop();

// Two tables: by kernel, and by module (the numbers of blocks become '*'), the longest time first, with calls, time,
// share of all time, GB/s and GFLOP/s. What lies between the kernels is a line of its own. Where a GPU was called the
// times are those of where a call ran, and a column has the host's times beside them.
std::string tables(const Profile& profile);
// The trace event format of Chrome (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
// one complete event per call, on the host's threads (process 1); one more on its device (process 2 + index) for calls
// of a GPU, of the category "device". Throws where the file cannot be written.
void write_trace(const std::string& path, const Profile& profile);

// The clock of GPUs; start_cuda() sets it. A mark is a place in the work that a device was given, the next one.
using Mark = std::shared_ptr<const void>;
struct DeviceClock {
  Mark (*mark)(Device device);
  // From one mark of a device to a later one. Waits for both.
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
  Mark begin_;  // on a GPU
};

// While it lives, calls of this thread count as a backward rule's, and as those of the module `path`.
class Backward {
 public:
  [[nodiscard]] explicit Backward(const std::string& path);
  ~Backward();
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;
};

}  // namespace isonorm::profile
