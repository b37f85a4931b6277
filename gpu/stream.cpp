#include "gpu/stream.h"

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/device.h"
#include "gpu/recorder.h"
#include "gpu/steps/capture.h"
#include "gpu/steps/complaints.h"

namespace isonorm::gpu {
namespace {

struct State {
  std::atomic<const char*> last_launch{nullptr};
  std::mutex mutex;
  std::unique_ptr<Stream> stream;
  std::string lost;  // the error that every call throws from now on
};

// One for each device, never destroyed: the driver may be gone when the process ends.
State& state(int index) {
  static auto& all = *new std::vector<State>(static_cast<size_t>(std::max(device_count(), 1)));
  return all[static_cast<size_t>(index)];
}

}  // namespace

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error, which is thrown here
  raise(ErrorKind::io, text(what, ": ", cudaGetErrorString(status)), __FILE__, __LINE__);
}

void check_device(Device device) {
  const int count = device_count();
  check(count > 0, "cuda: ", count > 0 ? std::string() : why_none());
  check(device.kind == DeviceKind::cuda && device.index >= 0 && device.index < count, device, ": there ",
        count == 1 ? "is 1 device" : text("are ", count, " devices"));
}

OnDevice::OnDevice(int index) {
  must(cudaGetDevice(&outer_), "cuda");
  if (outer_ == index)
    outer_ = -1;
  else
    must(cudaSetDevice(index), "cuda");
}
OnDevice::~OnDevice() {
  if (outer_ >= 0) (void)cudaSetDevice(outer_);
}

Stream::Stream(int index) : index_(index) {
  const OnDevice on(index);
  must(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cuda: stream");
}
Stream::~Stream() { (void)cudaStreamDestroy(handle_); }

void Stream::wait() const {
  refuse_in_capture("it waits for the device, as reading a number of a tensor does");
  record_wait("stream");
  check_stream(*this, cudaStreamSynchronize(handle_));
  throw_complaint(index_);
}
void Stream::wait_for(const Event& event) const {
  check_stream(*this, cudaStreamWaitEvent(handle_, event.handle(), 0));
}

Stream& stream_of(Device device) {
  State& s = state(device.index);
  std::lock_guard lock(s.mutex);
  if (!s.stream) {
    check_device(device);
    s.stream = std::make_unique<Stream>(device.index);
  }
  return *s.stream;
}

Event::Event(int index, bool timed) : index_(index) {
  const OnDevice on(index);
  must(cudaEventCreateWithFlags(&handle_, timed ? cudaEventDefault : cudaEventDisableTiming), "cuda: event");
}
Event::~Event() { (void)cudaEventDestroy(handle_); }

void Event::record(const Stream& stream) {
  check(stream.index() == index_, "cuda: an event of cuda:", index_, " in a stream of cuda:", stream.index());
  check_stream(stream, cudaEventRecord(handle_, stream.handle()));
}
void Event::wait() const {
  refuse_in_capture("it waits for the device, as reading a number of a tensor does");
  record_wait("event");
  check_stream(stream_of(Device{DeviceKind::cuda, index_}), cudaEventSynchronize(handle_));
  throw_complaint(index_);
}
bool Event::over() const {
  const cudaError_t status = cudaEventQuery(handle_);
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check_stream(stream_of(Device{DeviceKind::cuda, index_}), status);
  return true;
}
double Event::seconds_since(const Event& begin) const {
  float milliseconds = 0;
  must(cudaEventElapsedTime(&milliseconds, begin.handle_, handle_), "cuda: event");
  return 1e-3 * static_cast<double>(milliseconds);
}

void check_stream(const Stream& stream, cudaError_t status) {
  if (status == cudaSuccess) [[likely]]
    return;
  // Reading clears an error that does not persist.
  const bool stays = cudaGetLastError() == status && cudaGetLastError() == status;
  State& s = state(stream.index());
  const char* last = s.last_launch;
  std::lock_guard lock(s.mutex);
  if (s.lost.empty()) {
    const std::string message = text("cuda:", stream.index(), ": ", cudaGetErrorString(status), "; seen after ",
                                     last ? text("'", last, "'") : "no kernel");
    if (!stays) raise(ErrorKind::io, message, __FILE__, __LINE__);
    s.lost = message;
  }
  raise(ErrorKind::io, s.lost, __FILE__, __LINE__);
}

void note_launch(const Stream& stream, const char* name) {
  state(stream.index()).last_launch.store(name, std::memory_order_relaxed);
}

}  // namespace isonorm::gpu
