// Two devices, cuda:0 and cuda:1, on any machine, in programs that are linked with the emulated GPU: memory that the host
// cannot touch, kernels where a slot has one, and every other slot by a fallback (fallback.h).
#pragma once

#include <string>
#include <vector>

#include "core/device.h"

namespace isonorm::test {

inline constexpr Device kCuda{DeviceKind::cuda, 0}, kCuda1{DeviceKind::cuda, 1};

// Starts the devices and gives fallbacks to slots without a kernel; once, before the first tensor of a device.
void start_devices();
// The slots that run by a fallback since then, by their names in core/kernels.
const std::vector<std::string>& fallback_slots();

}  // namespace isonorm::test
