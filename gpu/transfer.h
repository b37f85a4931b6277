// Copies between devices, and between a device and the host.
#pragma once

#include "core/memory/upload.h"
#include "core/tensor.h"

namespace isonorm::gpu {

// dst = src: contiguous, of the same shape and dtype, not empty, on two devices. The copy runs after the work that the
// source's device was given before, and before the work that the destination's device is given later. On return, a
// tensor on the host may be read or overwritten: a copy to the host waits for the device, a copy from the host may
// still be running on it.
void transfer(const Tensor& dst, const Tensor& src);

// Copies from the host that overlap with a device's work: through pinned memory, in a stream of their own.

// core's upload() for CUDA devices. Four orders hold. The copy follows the device's earlier work, which may have used
// the tensor's memory. Work given after take() follows the copy, and so does work given after the upload was dropped. A
// pinned block is reused only when its copy is over.
std::unique_ptr<Upload> begin_upload(const Tensor& x, Device device);

}  // namespace isonorm::gpu
