// Streams, events, graphs.
#include <chrono>

#include "tests/ptx/runtime/runtime.h"

struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool is_captured = false;
};
struct CUgraphExec_st {
  isonorm::ptx::Work work;
};

namespace isonorm::ptx {

cudaError_t do_now(const std::function<void()>& work) {
  if (lost()) return lost();
  try {
    work();
  } catch (const Fault& fault) {
    lose(fault);
  }
  return cudaSuccess;  // the next call returns a kernel's error
}
cudaError_t give(cudaStream_t stream, std::function<void()> work) {
  if (!stream->is_captured) return do_now(work);
  stream->recorded.push_back(std::move(work));
  return lost();
}

}  // namespace isonorm::ptx

using namespace isonorm::ptx;
using Guard = std::lock_guard<std::recursive_mutex>;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return lost();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return lost();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Guard guard(lock());
  return lost() ? lost() : noted(stream->is_captured ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return lost(); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return lost();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return lost();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Guard guard(lock());
  *event = {std::chrono::steady_clock::now(), stream->is_captured};
  return lost();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return lost() ? lost() : noted(event->is_captured ? cudaErrorCapturedEvent : cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return lost();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Guard guard(lock());
  if (stream->is_captured) return noted(cudaErrorStreamCaptureUnsupported);
  stream->is_captured = true;
  return lost();
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Guard guard(lock());
  if (!stream->is_captured) return noted(cudaErrorInvalidValue);
  stream->is_captured = false;
  *graph = new CUgraph_st{std::exchange(stream->recorded, {})};
  return lost();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->work};
  return lost();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const Guard guard(lock());
  for (const auto& work : exec->work)
    if (const cudaError_t e = give(stream, work)) return e;
  return lost();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return lost();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return lost();
}

}  // extern "C"
