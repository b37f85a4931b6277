// Streams order the work of a device. Each device has one stream, shared by all threads of the process. Work runs in
// the given order, so a block that a tensor releases may be reused at once. Further streams (copies of the next batch)
// are ordered by events. Errors of kernels come late and persist: the first wait that sees an error says after which
// kernel; from then on every wait and launch on this device throws the same error.
#pragma once

#include <string>

#include "core/tensor.h"
#include "gpu/cuda.h"

namespace isonorm::gpu {

// Throws "<what>: <CUDA's message>" if `status` is not success. Used on calls that report their own errors, not an
// earlier kernel's.
void must(cudaError_t status, const char* what);
// Throws "cuda:1: there is 1 device" or "cuda: <why_none()>".
void check_device(Device device);

// While it lives, `index` is the calling thread's current device.
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
  explicit Stream(int index);  // another stream of the device, in addition to stream_of()
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int index() const { return index_; }
  cudaStream_t handle() const { return handle_; }

  // Makes the host wait for all work given so far. Throws that work's errors and complaints of checks
  // (steps/complaints.h).
  void wait() const;
  void wait_for(const Event& event) const;  // makes later work in this stream wait for the event

 private:
  int index_;
  cudaStream_t handle_ = nullptr;
};

// The stream that computes the tensors of a device. Lives until the process ends.
Stream& stream_of(Device device);
inline Stream& stream_of(const Tensor& t) { return stream_of(t.device()); }

// A point in a stream's work.
class Event {
 public:
  explicit Event(int index, bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  void wait() const;                               // makes the host wait; throws like Stream::wait()
  bool over() const;                               // true if wait() would return at once
  double seconds_since(const Event& begin) const;  // both must be timed and over
  cudaEvent_t handle() const { return handle_; }

 private:
  int index_;
  cudaEvent_t handle_ = nullptr;
};

// Throws if `status`, of a wait or a launch in this stream, is an error, and names the last kernel that the device was
// given before: "cuda:0: an illegal memory access was encountered; seen after 'softmax.rows'". If the error persists,
// every later call throws it, too.
void check_stream(const Stream& stream, cudaError_t status);
// Remembers the kernel that launch() gave to a device.
void note_launch(const Stream& stream, const char* name);

}  // namespace isonorm::gpu
