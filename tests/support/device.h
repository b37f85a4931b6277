// Two devices, cuda:0 and cuda:1, on any machine: their memory is the host's, at addresses that the host cannot read or
// write (a touch ends the program), and every slot without a kernel of its own runs by a fallback (fallback.h).
#pragma once

#include <string>
#include <vector>

#include "core/device.h"

namespace isonorm::test {

inline constexpr Device kCuda{DeviceKind::cuda, 0}, kCuda1{DeviceKind::cuda, 1};

// Binds memory, transfer and kernels; once, before the first tensor of a device.
void start_devices();
// The slots that run by a fallback since then, by their names in core/kernels.
const std::vector<std::string>& fallback_slots();

}  // namespace isonorm::test
