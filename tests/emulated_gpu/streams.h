// Emulated streams, events and graphs; and what runtime.cpp shares with them: the lock and errors.
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
  const char* kernel = nullptr;      // null: a copy or a mark, which touches no memory by a kernel's addresses
  std::function<bool()> ready = {};  // where there is one, the stream stands still until it says so
};

// Work that is written down instead of done, and the streams that take part.
struct Graph {
  uint64_t number = 0;  // of the capture
  std::vector<Work> work;
  std::set<Stream*> joined;  // besides the first, and not yet waited for by it
  bool invalid = false;
};

struct Stream {
  int device;
  std::deque<Work> todo;
  uint64_t given = 0, done = 0;
  Graph* capture = nullptr;
  bool captures_first = false;  // it began the capture
  bool asked = false;           // whether its next work is ready
};

struct Event {
  Stream* stream = nullptr;
  uint64_t after = 0;    // how much of the stream's work
  uint64_t capture = 0;  // that it was recorded in; 0: none. It stays so when the capture is over
  bool timed = true;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

// Held by every call of the runtime, also while work is done.
std::recursive_mutex& lock();

// What a call of this function gives at once, before it does anything: injected, or the device is lost.
cudaError_t injected(const char* function);
// What every call gives from now on; cudaSuccess while the device is not lost.
cudaError_t lost_error();
// Remembers a failure for cudaGetLastError(), and returns it.
cudaError_t noted(cudaError_t e);

int current_device();
Stream& of(Stream* s);  // null: the default stream of the current device
// Whether the calling thread captures, and may not ask for memory nor wait; if so the capture is spoiled.
bool spoils_capture();

cudaError_t enqueue(Stream& s, Work work);
void drain(Stream& s, uint64_t until);  // does its work up to this number, as far as it is ready
void drain_device(int device);
void drop_work();  // of all streams

}  // namespace isonorm::gpu::emulated
