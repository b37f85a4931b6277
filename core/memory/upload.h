// Copies tensors to a device while the device computes.
#pragma once

#include <memory>

#include "core/tensor.h"

namespace isonorm {

// A copy in progress. If it is destroyed before take(), later uses of its memory still wait for the copy.
class Upload {
 public:
  virtual ~Upload() = default;
  // Returns the tensor on the device. Later work on the device waits for the copy; the host does not. Call it once.
  virtual Tensor take() = 0;
};

// Begins to copy x to a device. x is contiguous, on the CPU, of any dtype. Any thread may call it. On a GPU the copy
// goes through pinned memory in a stream of its own, after all work that the device was given so far; if several copies
// are still in progress, the calling thread waits for one first. x may be written to when upload() returns. On
// the CPU the result is x itself. Throws if x is not contiguous on the CPU, or if the program has no such device.
std::unique_ptr<Upload> upload(const Tensor& x, Device device);

// Begins a copy to a GPU. Set by start_cuda().
using BeginUpload = std::unique_ptr<Upload> (*)(const Tensor& x, Device device);
inline constinit BeginUpload begin_upload = nullptr;

}  // namespace isonorm
