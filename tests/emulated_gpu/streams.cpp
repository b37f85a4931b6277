#include "tests/emulated_gpu/streams.h"

#include <algorithm>
#include <optional>
#include <string>

#include "tests/emulated_gpu/device_memory.h"

namespace isonorm::gpu {
namespace emulated {
namespace {

using Clock = std::chrono::steady_clock;
using Guard = std::lock_guard<std::recursive_mutex>;

std::vector<Stream*>& streams() {
  static std::vector<Stream*>& all = *new std::vector<Stream*>;
  return all;
}
thread_local std::vector<Stream*> captures;  // begun by this thread
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

bool idle(int device) {
  return std::all_of(streams().begin(), streams().end(),
                     [&](const Stream* s) { return s->device != device || s->todo.empty(); });
}

uint64_t draw() {  // splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
  static uint64_t count = 0;
  uint64_t z = (schedule().seed + ++count) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Does a random amount of work of a random stream.
void drain_some() {
  Stream& s = *streams()[draw() % streams().size()];
  drain(s, std::min(s.given, s.done + draw() % 4));
}

}  // namespace

Stream& of(Stream* s) {
  static std::vector<Stream*> defaults(kDevicesMost);
  if (s) return *s;
  Stream*& d = defaults[static_cast<size_t>(current_device())];
  if (!d) streams().push_back(d = new Stream{current_device(), {}});
  return *d;
}

bool spoils_capture() {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return false;
  for (Stream* s : captures) s->capture->invalid = true;
  return !captures.empty();
}

namespace {

// The capture with this number if it is still active, else null.
Graph* under_way(uint64_t number) {
  for (const Stream* s : streams())
    if (s->capture && s->capture->number == number) return s->capture;
  return nullptr;
}

// A captured event marks no finished work. Querying it invalidates its capture, if that is still active.
cudaError_t refuse_captured(const Event& e) {
  if (Graph* g = under_way(e.capture)) g->invalid = true;
  return noted(cudaErrorCapturedEvent);
}

}  // namespace

int64_t pending_work() {
  const Guard guard(lock());
  int64_t n = 0;
  for (const Stream* s : streams()) n += static_cast<int64_t>(s->todo.size());
  return n;
}

cudaError_t enqueue(Stream& s, Work work) {
  if (s.capture) {
    s.capture->work.push_back(std::move(work));
    return cudaSuccess;
  }
  ++s.given;
  if (runtime_settings().dry) {
    s.done = s.given;
    return cudaSuccess;
  }
  s.todo.push_back(std::move(work));
  if (runtime_settings().pace == Pace::at_once) drain(s, s.given);
  if (runtime_settings().pace == Pace::drawn) drain_some();
  return cudaSuccess;
}

namespace {

// True if the stream's next work can be done. A stream that waits for another one may be asked by that one in turn;
// then it does not proceed.
bool ready(Stream& s) {
  if (!s.todo.front().ready) return true;
  struct Asked {
    bool& flag;
    ~Asked() { flag = false; }
  } const asked{s.asked = true};
  return s.todo.front().ready();
}

// Waits of the program that have no time limit must succeed.
void drain_all(const char* function, Stream& s, uint64_t until) {
  drain(s, until);
  if (s.done < until) throw Fault(std::string(function) + " waits for work that is done when all ranks have come");
}

}  // namespace

void drain(Stream& s, uint64_t until) {
  if (s.done >= until || s.asked) return;
  std::string kernels;
  {
    std::optional<Exposure> exposure;
    while (s.done < until && !s.todo.empty()) {
      exposure.reset();
      if (!ready(s)) break;
      const Work work = std::move(s.todo.front());
      s.todo.pop_front();
      ++s.done;
      if (work.kernel) exposure.emplace(s.device, work.kernel);
      if (work.kernel && kernels.size() < 200) kernels += (kernels.empty() ? "" : ", ") + std::string(work.kernel);
      work.run();
    }
  }
  if (!kernels.empty()) check_guards(s.device, kernels.c_str());
  if (idle(s.device)) reclaim(s.device);
}

void drop_work() {
  for (Stream* s : streams()) {
    s->todo.clear();
    s->done = s->given;
  }
}

void drain_device(int device) {
  for (size_t i = 0; i < streams().size(); ++i)
    if (streams()[i]->device == device) drain(*streams()[i], streams()[i]->given);
  reclaim(device);
}

cudaError_t launch_kernel(Stream* stream, const char* name, dim3 blocks, dim3 threads, size_t dynamic,
                          std::function<void()> thread) {
  const Guard guard(lock());
  if (const cudaError_t e = injected("cudaLaunchKernel")) return e;
  Stream& s = of(stream);
  if (s.device != current_device()) return noted(cudaErrorInvalidResourceHandle);
  if (refusal_of(blocks, threads, dynamic)) return noted(cudaErrorInvalidConfiguration);
  return enqueue(s, {[=, thread = std::move(thread)] {
                       const auto call = [](const void* f) { (*static_cast<const std::function<void()>*>(f))(); };
                       run({name, blocks, threads, dynamic, call, &thread});
                     },
                     name});
}

}  // namespace emulated

using namespace emulated;

cudaError_t cudaDeviceSynchronize() {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  drain_device(current_device());
  return lost_error();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  streams().push_back(*s = new Stream{current_device(), {}});
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  const Guard guard(lock());
  drain(*s, s->given);
  std::erase(streams(), s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (of(s).capture || spoils_capture()) {
    if (of(s).capture) of(s).capture->invalid = true;
    return noted(cudaErrorStreamCaptureUnsupported);
  }
  drain_all(__func__, of(s), of(s).given);
  return lost_error();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  Stream& s = of(stream);
  if (e->capture) {  // a graph runs its work in the order of the calls: records only the participating streams
    Graph* const graph = under_way(e->capture);
    if (!graph) return refuse_captured(*e);
    if (s.capture && s.capture != graph) return noted(cudaErrorStreamCaptureUnsupported);
    if (!s.capture) {
      s.capture = graph;
      graph->joined.insert(&s);
    }
    if (s.captures_first) graph->joined.erase(e->stream);
    return cudaSuccess;
  }
  if (!e->stream) return cudaSuccess;
  return enqueue(s, {[] {}, nullptr,
                     [other = e->stream, after = e->after] {
                       drain(*other, after);
                       return other->done >= after;
                     }});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  *e = new Event;
  (*e)->timed = flags != cudaEventDisableTiming;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  const Guard guard(lock());
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  Stream& s = of(stream);
  e->stream = &s;
  e->capture = s.capture ? s.capture->number : 0;
  if (s.capture) return cudaSuccess;
  e->after = s.given + 1;
  e->time = std::make_shared<Clock::time_point>();  // shared with the work, which may run after the event is destroyed
  return enqueue(s, {[time = e->time] { *time = Clock::now(); }});
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  if (e->capture) return refuse_captured(*e);
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  if (!e->stream) return cudaSuccess;
  drain(*e->stream, std::min(e->after, e->stream->done + 1));
  if (lost_error()) return lost_error();
  return e->stream->done >= e->after ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  if (e->capture) return refuse_captured(*e);
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  if (e->stream) drain_all(__func__, *e->stream, e->after);
  return lost_error();
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  const Guard guard(lock());
  if (const cudaError_t failed = injected(__func__)) return failed;
  for (const Event* e : {begin, end}) {
    if (e->capture) return refuse_captured(*e);
    if (!e->stream || !e->timed) return noted(cudaErrorInvalidResourceHandle);
    if (e->stream->done < e->after) return cudaErrorNotReady;
  }
  *ms = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (!s || s->capture) return noted(cudaErrorStreamCaptureUnsupported);
  static uint64_t count = 0;
  s->capture = new Graph{.number = ++count, .work = {}, .joined = {}};
  s->captures_first = true;
  captures.push_back(s);
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (!s->captures_first) return noted(cudaErrorInvalidValue);
  Graph* g = s->capture;
  const bool unjoined = !g->joined.empty();
  for (Stream* other : streams())
    if (other->capture == g) other->capture = nullptr;
  s->captures_first = false;
  std::erase(captures, s);
  *graph = nullptr;
  if (!g->invalid && !unjoined) {
    *graph = g;
    return cudaSuccess;
  }
  const bool invalid = g->invalid;
  delete g;
  return noted(invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t e = injected(__func__)) return e;
  *exec = new Graph{.number = graph->number, .work = graph->work, .joined = {}};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  for (const Work& w : exec->work)
    if (const cudaError_t e = enqueue(of(s), w)) return e;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

}  // namespace isonorm::gpu
