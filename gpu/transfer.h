// Copies between devices, and between a device and the host.
#pragma once

#include "core/tensor.h"

namespace isonorm::gpu {

// dst = src: contiguous, of one shape and dtype, not empty, on two devices. It follows what was asked of the source's
// device before, and what is asked of the destination's later follows it. When it returns, a tensor on the host may be
// read, or written to. From the host the device may still be at work; to the host it waits.
void transfer(const Tensor& dst, const Tensor& src);

}  // namespace isonorm::gpu
