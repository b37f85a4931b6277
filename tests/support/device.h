// Two devices, cuda:0 and cuda:1, on any machine: programs that link the emulated GPU get device memory that the host
// cannot access.
#pragma once

#include "core/device.h"

namespace isonorm::test {

inline constexpr Device kCuda{DeviceKind::cuda, 0}, kCuda1{DeviceKind::cuda, 1};

}  // namespace isonorm::test
