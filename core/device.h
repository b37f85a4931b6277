// Device: the CPU or a GPU, on which a tensor's bytes are.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace isonorm {

enum class DeviceKind : uint8_t { cpu, cuda };
inline constexpr int kDeviceKinds = 2;

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};
constexpr Device cuda(int index = 0) { return {DeviceKind::cuda, index}; }

// True if all kernels of this device accept bf16 and accumulate in f32. If not, most ops convert to f32 and round the
// result; matrix products ask kernels::bf16_products().
constexpr bool native_bf16(Device d) { return d.kind == DeviceKind::cuda; }

inline void append_text(std::string& s, Device d) { s += d.kind == DeviceKind::cpu ? "cpu" : text("cuda:", d.index); }

}  // namespace isonorm
