#include "gpu/device.h"

#include "gpu/memory.h"
#include "gpu/steps/capture.h"
#include "gpu/stream.h"

namespace isonorm::gpu {
namespace {

struct Found {
  int count = 0;
  std::string why_none;
  Found() {
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return;
    count = 0;
    why_none = text("no device: ", cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status));
    (void)cudaGetLastError();
  }
};
const Found& found() {
  static const Found f;
  return f;
}

}  // namespace

int device_count() { return found().count; }
std::string why_none() { return found().why_none; }

std::string device_name(Device device) {
  check_device(device);
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, device.index), "cuda");
  return properties.name;
}

Memory memory(Device device) {
  check_device(device);
  const OnDevice on(device.index);
  size_t free = 0, total = 0;
  must(cudaMemGetInfo(&free, &total), "cuda");
  return {static_cast<int64_t>(free), static_cast<int64_t>(total), device_allocator(device).held()};
}

void set_memory_limit(int64_t bytes, Device device) {
  refuse_in_capture("it limits the device's memory");
  DeviceAllocator& allocator = device_allocator(device);
  check(bytes >= 0, "set_memory_limit: ", bytes, " bytes is not a possible limit");
  if (bytes > 0 && allocator.held() > bytes) allocator.empty_cache();
  check(bytes == 0 || allocator.held() <= bytes, "set_memory_limit: ", bytes, " bytes, but ", allocator.held(),
        " are held");
  allocator.set_limit(bytes);
}

void empty_cache(Device device) {
  refuse_in_capture("it empties the cache of the device's memory");
  device_allocator(device).empty_cache();
}

void synchronize(Device device) {
  check_device(device);
  stream_of(device).wait();
}

}  // namespace isonorm::gpu
