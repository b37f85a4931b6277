// Tensors on their way to a device, beside what it computes.
#pragma once

#include <memory>

#include "core/tensor.h"

namespace isonorm {

// A copy that is under way. Dropped before it was taken, it is given up without harm to what its memory serves next.
class Upload {
 public:
  virtual ~Upload() = default;
  // The tensor on the device: what is computed with it from now on follows the copy, for which the host does not wait.
  // Once.
  virtual Tensor take() = 0;
};

// Begins to copy x, contiguous and on the CPU, to a device; any dtype, by any thread. When it returns x may be written
// to. On a GPU the copy goes through memory that is pinned, in a stream of its own, behind all that the device was given
// so far; the calling thread waits where several copies are still under way. The CPU: x itself. Throws where x is not
// such a tensor or the program has no such device.
std::unique_ptr<Upload> upload(const Tensor& x, Device device);

// How copies to a GPU begin; start_cuda() sets it.
using BeginUpload = std::unique_ptr<Upload> (*)(const Tensor& x, Device device);
inline constinit BeginUpload begin_upload = nullptr;

}  // namespace isonorm
