// Where a tensor's bytes live.
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

// Whether all kernels of this device take bf16 as it is, accumulating in f32. Where not, most rules compute in f32 and
// round the result; those of products ask kernels::bf16_products.
constexpr bool native_bf16(Device d) { return d.kind == DeviceKind::cuda; }

inline void append_text(std::string& s, Device d) { s += d.kind == DeviceKind::cpu ? "cpu" : text("cuda:", d.index); }

}  // namespace isonorm
