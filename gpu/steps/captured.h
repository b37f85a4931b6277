// Repeated work of a device as a CUDA graph. The work runs normally twice and is captured the third time. From then on
// a single driver call starts it, which costs the host the same for any number of kernels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/device.h"

namespace isonorm::kernels {
struct Update;  // core/kernels/optimizer.h
}

namespace isonorm::gpu {

// The work must do the same with tensors of the device each time, with the same tensors or with new ones that it makes
// itself. Two kinds of numbers may change: random numbers of the thread's default_generator(), which continue from its
// state, and the numbers of kernels::update (rates, bias corrections). All other values of the host are captured as
// they were.
//
// The memory that the work takes in the second and the third run belongs to this object as long as it lives: results of
// the third run that the work leaves somewhere are overwritten in every replay. Memory of the first run belongs to the
// allocator again: empty_cache() releases it.
//
// During the capture the work may not wait for the device (item(), to_vector(), printing) nor copy tensors from the
// host: "captured step: it waits for the device, ...". No other thread may use the device meanwhile.
class Captured {
 public:
  // numbers: counts a step without giving the device work, and returns the updates that the step would make, in order;
  // only their gradient_scale, l2, keep and rule are read. Not given: there are no updates. Throws if `device` is not a
  // CUDA device.
  Captured(Device device, std::function<void()> work, std::function<std::vector<kernels::Update>()> numbers = {});
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  // Does the work once more. Throws the work's errors, and an error if numbers() returns other updates than the
  // captured ones. If the capture fails, its effects on the host remain.
  void operator()();
  // True if the next call replays the graph.
  bool replays() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isonorm::gpu
