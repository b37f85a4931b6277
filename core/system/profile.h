// Where the time goes: every call of a kernel with its time, the bytes of its tensors, its floating-point operations
// and the module that asked for it.
//
//   ISONORM_PROFILE=1 program           prints tables on stderr when the program ends
//   ISONORM_PROFILE=trace.json program  also writes the calls as a trace for ui.perfetto.dev or chrome://tracing;
//                                       where it cannot be written the exit code is 4
//
// or, around what is of interest, profile::start() and std::puts(profile::tables(profile::stop()).c_str()).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace isonorm::profile {

struct Call {
  const char* kernel;
  std::string module;     // path of the module, empty outside of every module
  bool backward;          // from a backward rule
  int thread;             // the calling thread, counted from 0
  double start, seconds;  // start: since profile::start()
  int64_t bytes;          // of the tensors handed to the kernel, each counted once; caches may save a part
  int64_t flops;          // 0 where the kernel does not say
};

struct Profile {
  std::vector<Call> calls;
  double seconds = 0;  // from start() to stop()
};

// Drops what was recorded so far and records from now on, in all threads. Recording costs some 200 ns per call.
void start();
// Ends recording. Throws where none was started.
Profile stop();

// Two tables: by kernel, and by module (the numbers of blocks become '*'), the longest time first, with calls, time,
// share of all time, GB/s and GFLOP/s. What lies between the kernels is a line of its own.
std::string tables(const Profile& profile);
// The trace event format of Chrome (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
// one complete event per call. Throws where the file cannot be written.
void write_trace(const std::string& path, const Profile& profile);

namespace detail {
inline std::atomic<bool> recording{false};
}
inline bool recording() { return detail::recording.load(std::memory_order_relaxed); }

// Records the time from construction to destruction as one call.
class Timer {
 public:
  Timer(const char* kernel, int64_t bytes, int64_t flops);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  Call call_;
};

// While it lives, calls of this thread count as a backward rule's, and as those of the module `path`.
class Backward {
 public:
  explicit Backward(const std::string& path);
  ~Backward();
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;
};

}  // namespace isonorm::profile
