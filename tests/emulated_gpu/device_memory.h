// Memory of the emulated devices. Each device has its own range of addresses, mapped twice. Kernels use the first
// mapping, which is accessible only while a kernel of this device runs; a host function, or a kernel of another device,
// that accesses it is stopped with an error line. Copies use the second mapping. Blocks are 256 bytes apart. Unwritten
// memory is all ones (NaN, -1), and so are the bytes between blocks and in released blocks, which is checked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isonorm::gpu::emulated {

inline constexpr int kDevicesMost = 4;

// A block of exactly `bytes` usable bytes at a multiple of 256; nullptr if the device has no more memory.
void* allocate_device(int device, size_t bytes);
// False if no block begins at p. The bytes stay until reclaim(), because earlier work may still use them.
bool release_device(int device, void* p);
void reclaim(int device);  // throws Fault like check_guards()
size_t device_bytes_in_use(int device);

// The device whose range contains the address; -1: host memory.
int device_of(const void* p);
// The address by which copies access these n bytes of a live block; null if they are not within one.
std::byte* reach(const void* p, size_t n);

// Throws Fault if bytes outside of live blocks were written. `suspects` names the kernels that ran since the last
// check.
void check_guards(int device, const char* suspects);

// From now on, forbidden accesses to device memory are reported on stderr before the process ends by SIGSEGV. Called
// when memory is first allocated, and again if another handler may have been installed since. Sanitizers report by
// themselves.
void watch_accesses();

// While it lives, kernels of one device can access its memory, and no other device's memory is accessible.
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
