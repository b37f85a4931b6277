// Memory of the emulated devices. Each has a range of addresses of its own, mapped twice: kernels use the first
// mapping, which has no access rights but while a kernel of that device runs, so a host function (or a kernel of another device)
// that touches it stops there with a line that says so; copies use the second. Blocks lie 256 bytes apart. What nobody
// has written is all ones (NaN, -1), and so are the bytes between blocks and those of released ones, which is checked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isonorm::gpu::emulated {

inline constexpr int kDevicesMost = 4;

// A block of exactly `bytes` usable bytes at a multiple of 256; nullptr where the device has no more.
void* allocate_device(int device, size_t bytes);
// False where no block begins there. Its bytes stay until reclaim(): work that was given before may still use them.
bool release_device(int device, void* p);
void reclaim(int device);  // throws Fault as check_guards()
size_t device_bytes_in_use(int device);

// The device whose range an address lies in; -1: host memory.
int device_of(const void* p);
// Where copies reach n bytes of a living block; null where they are not within one.
std::byte* reach(const void* p, size_t n);

// Throws Fault where bytes outside of living blocks were written to; `suspects` ran since the last check.
void check_guards(int device, const char* suspects);

// From now on who touches device memory and may not is named on stderr before the process ends by SIGSEGV. Done when
// memory is first asked for; again where somebody else has taken the signal since. Sanitizers name it by themselves.
void watch_accesses();

// Lets kernels of one device touch its memory while it lives, and nobody touch that of the others.
class Exposure {
 public:
  Exposure(int device, const char* kernel);
  ~Exposure();
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;

 private:
  int outer_;
  const char* outer_kernel_;
};

}  // namespace isonorm::gpu::emulated
