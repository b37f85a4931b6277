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

inline void append_text(std::string& s, Device d) { s += d.kind == DeviceKind::cpu ? "cpu" : text("cuda:", d.index); }

}  // namespace isonorm
