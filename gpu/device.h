// CUDA devices as a program sees them. If the library was built without CUDA, or the machine has no driver, there are
// no devices: device_count() is 0, and only asking for a device is an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace isonorm::gpu {

namespace detail {
inline std::atomic<bool> deterministic{true}, tf32{false};
}

// Devices that tensors can be on: cuda:0 to cuda:(n - 1). Never throws.
int device_count();
// Why there are no devices, in one line: "this library was built without it", or the driver's message. Empty if there
// are some.
std::string why_none();

// The device named "cpu", "cuda" (cuda:0) or "cuda:1", whether it exists or not; none for any other word.
inline std::optional<Device> device_of(std::string_view word) {
  if (word == "cpu") return kCpu;
  Device device{DeviceKind::cuda, 0};
  if (word == "cuda") return device;
  if (!word.starts_with("cuda:") || word.size() == 5 || word.size() > 11) return {};
  for (const char digit : word.substr(5)) {
    if (digit < '0' || digit > '9') return {};
    device.index = 10 * device.index + (digit - '0');
  }
  return device;
}

// "NVIDIA H200". The functions of a device throw "cuda:1: there is 1 device" and "cuda: <why_none()>".
std::string device_name(Device device = {DeviceKind::cuda, 0});

struct Memory {
  int64_t free = 0;   // bytes that the device has left, for all programs
  int64_t total = 0;  // bytes of the device
  int64_t held = 0;   // bytes that this program took from it, for tensors and for reuse
};
Memory memory(Device device = {DeviceKind::cuda, 0});

// Limits the bytes of the device that tensors of this program take; 0: no limit. Throws if they already hold more.
void set_memory_limit(int64_t bytes, Device device = {DeviceKind::cuda, 0});
// Returns the memory kept for reuse to the device.
void empty_cache(Device device = {DeviceKind::cuda, 0});

// An NVIDIA library that is opened if it is found; without it our own kernels do its work.
struct LibraryFacts {
  std::string name;            // "cuBLASLt"
  std::string version;         // "13.1.0"; empty if there is no library
  std::string path;            // the file that was opened
  std::string why_none;        // one line; empty if the library is used
  int64_t refusals = 0;        // plans that it did not carry out; our kernels computed them
  std::string refusal;         // the reason of the last refusal
  int64_t epilogues_left = 0;  // epilogues without an algorithm; the library computed the product, our kernels the rest
};
// cuBLASLt and cuDNN, opened if they were not yet. Empty in a library without CUDA. Never throws.
std::vector<LibraryFacts> libraries();
// "cuBLASLt 13.1.0, /usr/lib/libcublasLt.so.13" or "cuDNN: none, libcudnn.so.9: cannot open ...".
inline std::string line_of(const LibraryFacts& f) {
  if (!f.why_none.empty()) return f.name + ": none, " + f.why_none;
  std::string line = f.name + ' ' + f.version + ", " + f.path;
  if (f.epilogues_left) line += "; " + text(f.epilogues_left) + " epilogues have no algorithm";
  return f.refusals ? line + "; refused " + text(f.refusals) + " times, last " + f.refusal : line;
}

// True (the default) gives results the same bits in every run. False allows sums in any order, which only cuDNN's
// attention backward uses: it adds up the gradients of queries in any order, in f32 [batch, heads, queries, size]. A
// fixed order needs the scores' gradients in memory instead, bf16 [batch, heads, queries, keys]: 805 MB a call for
// GPT-2 124M at 32 x 1024.
inline void set_deterministic(bool always) { detail::deterministic = always; }
inline bool deterministic() { return detail::deterministic; }

// Allows f32 products to round their operands to TF32 (10 bits of mantissa) if cuBLASLt computes them. Off by default.
inline void allow_tf32(bool allowed) { detail::tf32 = allowed; }
inline bool tf32_allowed() { return detail::tf32; }

// Waits until the device has done all its work. Throws the errors that occurred in it.
void synchronize(Device device = {DeviceKind::cuda, 0});

}  // namespace isonorm::gpu
