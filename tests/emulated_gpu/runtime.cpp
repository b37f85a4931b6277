#include "tests/emulated_gpu/runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/emulated_gpu/device_memory.h"
#include "tests/emulated_gpu/streams.h"

namespace isonorm::gpu {
namespace emulated {
namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

struct Failure {
  std::string function;
  cudaError_t error = cudaSuccess;
  int passes = 0;
};
Failure next_failure;
cudaError_t lost = cudaSuccess;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;

std::map<const std::byte*, size_t>& pinned() {  // begin and size in bytes
  static auto& blocks = *new std::map<const std::byte*, size_t>;
  return blocks;
}
bool is_pinned(const void* p, size_t n) {
  const auto* at = static_cast<const std::byte*>(p);
  auto b = pinned().upper_bound(at);
  if (b == pinned().begin()) return false;
  --b;
  return static_cast<size_t>(at - b->first) + n <= b->second;
}

// The address at which a copy of n bytes accesses p. Throws Fault if the copy may not access it.
std::byte* found(const char* function, const void* p, size_t n, bool on_device) {
  if ((device_of(p) >= 0) != on_device)
    throw Fault(std::string(function) + ": the direction does not fit: an address is the " +
                (on_device ? "host's" : "device's"));
  if (!on_device && is_pinned(p, n)) return static_cast<std::byte*>(const_cast<void*>(p));
  std::byte* at = on_device ? reach(p, n) : nullptr;
  if (at) return at;
  throw Fault(std::string(function) + ": " + std::to_string(n) + " bytes " +
              (on_device ? "that are not all of one block" : "of host memory that is not pinned"));
}

}  // namespace

RuntimeSettings& runtime_settings() {
  static RuntimeSettings s = [] {
    const char* libraries = std::getenv("ISONORM_GPU_LIBRARIES");
    return RuntimeSettings{.libraries = libraries && std::strcmp(libraries, "emulated") == 0};
  }();
  return s;
}
std::recursive_mutex& lock() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}
int current_device() { return device; }

void fail_next(const char* function, cudaError_t error, int passes) { next_failure = {function, error, passes}; }
void lose_device(cudaError_t error) {
  const Guard guard(lock());
  lost = error;
  if (lost) drop_work();
  last_error = cudaSuccess;
}
cudaError_t lost_error() { return lost; }
cudaError_t noted(cudaError_t e) { return last_error = e; }
cudaError_t injected(const char* function) {
  if (lost) return lost;
  if (!next_failure.error || next_failure.function != function || next_failure.passes-- > 0) return cudaSuccess;
  const cudaError_t e = next_failure.error;
  next_failure = {};
  return noted(e);
}

void check_argument(Stream* stream, const char* kernel, const void* p) {
  const Guard guard(lock());
  const int here = of(stream).device, there = device_of(p);
  if (!p || (there < 0 ? is_pinned(p, 0) : there == here && reach(p, 0))) return;
  throw Fault(std::string(kernel) + ": an argument is an address " +
              (there < 0       ? "of host memory that is not pinned"
               : there != here ? "of cuda:" + std::to_string(there)
                               : "outside of all blocks") +
              ", the stream is of cuda:" + std::to_string(here));
}

}  // namespace emulated

using namespace emulated;

cudaError_t cudaGetDeviceCount(int* count) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  *count = runtime_settings().devices;
  return *count > 0 ? cudaSuccess : noted(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= runtime_settings().devices) return noted(cudaErrorInvalidDevice);
  device = d;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
  *d = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  if (d < 0 || d >= runtime_settings().devices) return noted(cudaErrorInvalidDevice);
  *p = {};
  std::strcpy(p->name, "emulated on the CPU");
  p->uuid.bytes[0] = static_cast<char>(d + 1);
  p->major = 9;
  p->multiProcessorCount = runtime_settings().multiprocessors;
  p->l2CacheSize = 1 << 20;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->totalGlobalMem = runtime_settings().memory;
  p->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  *total = runtime_settings().memory;
  *free = *total - device_bytes_in_use(device);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t e) {
  static const std::map<cudaError_t, const char*> texts{
      {cudaSuccess, "no error"},
      {cudaErrorInvalidValue, "invalid argument"},
      {cudaErrorMemoryAllocation, "out of memory"},
      {cudaErrorInvalidConfiguration, "invalid configuration argument"},
      {cudaErrorNoDevice, "no CUDA-capable device is detected"},
      {cudaErrorInvalidDevice, "invalid device ordinal"},
      {cudaErrorInvalidResourceHandle, "invalid resource handle"},
      {cudaErrorNotReady, "device not ready"},
      {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
      {cudaErrorMisalignedAddress, "misaligned address"},
      {cudaErrorLaunchFailure, "unspecified launch failure"},
      {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
      {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
      {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
      {cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"}};
  const auto at = texts.find(e);
  return at == texts.end() ? "unrecognized error code" : at->second;
}
cudaError_t cudaGetLastError() {
  if (lost) return lost;
  const cudaError_t e = last_error;
  last_error = cudaSuccess;
  return e;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  *p = allocate_device(device, bytes);
  return *p ? cudaSuccess : noted(cudaErrorMemoryAllocation);
}
// CUDA waits for the device here. The emulation does not, so that a missing wait is detected; the block stays until its
// work is done.
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  const int owner = device_of(p);
  return owner >= 0 && release_device(owner, p) ? cudaSuccess : noted(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (spoils_capture()) return noted(cudaErrorStreamCaptureUnsupported);
  *p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*p) return noted(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  pinned()[static_cast<std::byte*>(*p)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  if (!p) return cudaSuccess;
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  for (int d = 0; d < runtime_settings().devices; ++d) drain_device(d);  // like CUDA
  if (pinned().erase(static_cast<std::byte*>(p)) == 0) return noted(cudaErrorInvalidValue);
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) return noted(cudaErrorInvalidValue);  // the direction must be explicit
  if (n == 0) return cudaSuccess;
  std::byte* out = found(__func__, to, n, to_device);
  const std::byte* in = found(__func__, from, n, from_device);
  if (runtime_settings().dry && kind == cudaMemcpyDeviceToHost) std::memset(out, 0xff, n);
  return enqueue(of(s), {[=] { std::memcpy(out, in, n); }});
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t n, cudaStream_t s) {
  const Guard guard(lock());
  if (const cudaError_t e = injected(__func__)) return e;
  if (n == 0) return cudaSuccess;
  return enqueue(of(s), {[=, out = found(__func__, p, n, true)] { std::memset(out, value, n); }});
}

}  // namespace isonorm::gpu
