// The instruction set that this translation unit is compiled for. CMake compiles every kernel source once per
// instruction set, with the flags for this set and with ISONORM_TARGET; each translation unit instantiates its kernels
// for kTarget.
#pragma once

#include "core/kernels/kernel.h"

namespace isonorm {
constexpr Isa kTarget = Isa::ISONORM_TARGET;
}
