// Work of a device that is done again and again: asked for twice, written down as a CUDA graph the third time, and from
// then on started by one call of the driver, which costs the host the same for any number of kernels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/device.h"

namespace isonorm::kernels {
struct Update;  // core/kernels/optimizer.h
}

namespace isonorm::gpu {

// What the work does with tensors of the device must be the same each time, with the same tensors or with ones that it
// makes itself. Two kinds of numbers may change: random numbers of the thread's default_generator(), which go on from
// wherever that is, and those of kernels::update (rates, bias corrections). All else of the host is written down as it was.
//
// The memory that the work takes the second and the third time is its own as long as this object lives: results of the
// third time that the work leaves somewhere are written again each time. What the first time took is the allocator's
// again: empty_cache() gives it back.
//
// While it is written down the work may not wait for the device (item(), to_vector(), printing) nor bring tensors from
// the host: "captured step: it waits for the device, ...". No other thread may use the device meanwhile.
class Captured {
 public:
  // numbers: counts a step without asking anything of the device, and gives the updates that it would make, in order, of
  // which gradient_scale, l2, keep and rule are read; not given: there are none. Throws where `device` is none of CUDA's.
  Captured(Device device, std::function<void()> work, std::function<std::vector<kernels::Update>()> numbers = {});
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  // Does the work once more. Throws what it throws; where numbers() gives other updates than those written down; where
  // the capture fails, what was done on the host has then been done all the same.
  void operator()();
  // Whether the next call replays.
  bool replays() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isonorm::gpu
