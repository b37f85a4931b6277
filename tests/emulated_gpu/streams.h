// Emulated streams, events and graphs, and what runtime.cpp shares with them: the lock and the errors.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/emulated_gpu/runtime.h"

namespace isonorm::gpu::emulated {

struct Work {
  std::function<void()> run;
  const char* kernel = nullptr;      // null: a copy or a mark, which does not access memory by kernel addresses
  std::function<bool()> ready = {};  // if set, the stream waits until it returns true
};

// Captured work, and the streams that take part.
struct Graph {
  uint64_t number = 0;  // number of the capture
  std::vector<Work> work;
  std::set<Stream*> joined;  // streams besides the first that it has not yet waited for
  bool invalid = false;
};

struct Stream {
  int device;
  std::deque<Work> todo;
  uint64_t given = 0, done = 0;
  Graph* capture = nullptr;
  bool captures_first = false;  // it began the capture
  bool asked = false;           // true while ready() asks about its next work
};

struct Event {
  Stream* stream = nullptr;
  uint64_t after = 0;    // the number of the event among the stream's work
  uint64_t capture = 0;  // the capture that recorded it; 0: none. Kept after the capture ends.
  bool timed = true;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

// Held by every call of the runtime, and while work is done.
std::recursive_mutex& lock();

// The error that a call of this function returns at once: injected, or because the device is lost.
cudaError_t injected(const char* function);
// The error of a lost device; otherwise cudaSuccess.
cudaError_t lost_error();
// Stores an error for cudaGetLastError(), and returns it.
cudaError_t noted(cudaError_t e);

int current_device();
Stream& of(Stream* s);  // null: the default stream of the current device
// True if the calling thread is capturing, so that it may neither allocate nor wait; the capture is then invalidated.
bool spoils_capture();

cudaError_t enqueue(Stream& s, Work work);
void drain(Stream& s, uint64_t until);  // does work up to this number while it is ready
void drain_device(int device);
void drop_work();  // of all streams

}  // namespace isonorm::gpu::emulated
