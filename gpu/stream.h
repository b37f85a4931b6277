// Where work of a device is put. One stream for each device, which all threads of the process share: what is given
// first is done first, so a block that a tensor gives back may be handed out at once. Further streams (copies of the
// next batch) are ordered by events. Errors of work come late and stay: the first wait that sees one says after which
// kernel, and from then on every wait and launch of that device says the same.
#pragma once

#include <string>

#include "core/tensor.h"
#include "gpu/cuda.h"

namespace isonorm::gpu {

// Throws "<what>: <what CUDA says>" where `status` is no success. For calls that fail by themselves.
void must(cudaError_t status, const char* what);
// Throws "cuda:1: there are 1 devices" or "cuda: <why_none()>".
void check_device(Device device);

// While it lives the calling thread's current device is this one.
class OnDevice {
 public:
  [[nodiscard]] explicit OnDevice(int index);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int outer_ = 0;
};

class Event;

class Stream {
 public:
  explicit Stream(int index);  // of that device, beside its own one
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int index() const { return index_; }
  cudaStream_t handle() const { return handle_; }

  // The host, for all that was given so far. Throws what went wrong there, and what a check found (steps/complaints.h).
  void wait() const;
  void wait_for(const Event& event) const;  // what is given from now on, for what the event marks

 private:
  int index_;
  cudaStream_t handle_ = nullptr;
};

// The stream in which tensors of a device are computed. Lives until the process ends.
Stream& stream_of(Device device);
inline Stream& stream_of(const Tensor& t) { return stream_of(t.device()); }

// A place in a stream's work.
class Event {
 public:
  explicit Event(int index, bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  void wait() const;                               // the host; throws as Stream::wait()
  bool over() const;                               // whether a wait would return at once
  double seconds_since(const Event& begin) const;  // both timed and over
  cudaEvent_t handle() const { return handle_; }

 private:
  int index_;
  cudaEvent_t handle_ = nullptr;
};

// Throws where the status of a wait or a launch in this stream is an error that stays, naming the last kernel that was
// given to the device before: "cuda:0: an illegal memory access was encountered; seen after 'softmax.rows'". Once seen,
// every call throws it.
void check_stream(const Stream& stream, cudaError_t status);
// launch() says what it gives to a device.
void note_launch(const Stream& stream, const char* name);

}  // namespace isonorm::gpu
