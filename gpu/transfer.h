// Copies between devices, and between a device and the host.
#pragma once

#include "core/tensor.h"

namespace isonorm::gpu {

// dst = src: contiguous, of one shape and dtype, not empty, on two devices. The copy runs after the work that the
// source's device was given before, and before the work that the destination's device is given later. On return, a
// tensor on the host may be read or overwritten: a copy to the host waits for the device, a copy from the host may
// still be running on it.
void transfer(const Tensor& dst, const Tensor& src);

}  // namespace isonorm::gpu
