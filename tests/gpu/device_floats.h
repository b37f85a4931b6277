// Floats on a device for tests of the emulation itself, by CUDA's own calls.
#pragma once

#include <cstring>
#include <vector>

#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

namespace isonorm::test {

using namespace gpu;

inline constexpr Device kGpu{DeviceKind::cuda, 0}, kOther{DeviceKind::cuda, 1};

class DeviceFloats {
 public:
  explicit DeviceFloats(size_t n, Device device = kGpu) : device_(device), host_(bytes(n)), n_(n) {
    const OnDevice on(device.index);
    must(cudaMalloc(&data_, static_cast<size_t>(bytes(n))), "test");
  }
  ~DeviceFloats() { (void)cudaFree(data_); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  float* data() const { return static_cast<float*>(data_); }
  float* host() const { return static_cast<float*>(host_.data()); }  // pinned; give() and take() copy from and to it
  void give(const std::vector<float>& v) {
    stream_of(device_).wait();  // waits until earlier copies have read host()
    std::memcpy(host(), v.data(), 4 * n_);
    must(cudaMemcpyAsync(data_, host(), 4 * n_, cudaMemcpyHostToDevice, stream_of(device_).handle()), "test");
  }
  void take() {  // does not wait
    must(cudaMemcpyAsync(host(), data_, 4 * n_, cudaMemcpyDeviceToHost, stream_of(device_).handle()), "test");
  }
  std::vector<float> taken() {
    take();
    stream_of(device_).wait();
    return {host(), host() + n_};
  }

 private:
  static int64_t bytes(size_t n) { return static_cast<int64_t>(4 * n); }
  Device device_;
  Pinned host_;
  size_t n_;
  void* data_ = nullptr;
};

}  // namespace isonorm::test
