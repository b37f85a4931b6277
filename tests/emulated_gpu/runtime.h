// The part of CUDA's runtime that gpu/ uses, on the host. A stream is a list of pending work, which runs when somebody
// waits for it. So a result that is read too early is detectably missing. device_memory.h has the device memory. Misuse
// that CUDA may not notice (copies beyond a block, host memory that is not pinned, faults of a kernel) throws Fault,
// from the call or from the wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/emulated_gpu/device.h"
#include "tests/emulated_gpu/scheduler.h"

namespace isonorm::gpu {

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorCapturedEvent = 907,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                          cudaHostAllocDefault = 0;

namespace emulated {

struct Stream;
struct Event;
struct Graph;

// When work runs: when somebody waits for it; at once; or at any time between, chosen by the schedule's seed.
enum class Pace { lazy, at_once, drawn };

struct RuntimeSettings {
  Pace pace = Pace::lazy;
  int devices = 2;
  size_t memory = size_t{16} << 30;  // per device
  // Launches and copies are accepted but not run, to time a program's calls. Device memory is only addresses, and
  // everything read from it is all ones. Set this before the first use of a device.
  bool dry = false;
  int multiprocessors = 3;  // odd and small, so that grids that depend on it do not fit shapes by chance
  // If true, cuBLASLt and cuDNN exist, emulated (libraries/). Initially true if ISONORM_GPU_LIBRARIES is
  // "emulated".
  bool libraries = false;
};
RuntimeSettings& runtime_settings();

// Makes calls of this runtime function fail with `error`: the first call after `passes` successful ones.
void fail_next(const char* function, cudaError_t error, int passes = 0);
// From now on every call returns this error, as after a failed kernel, and pending work does not run any more.
// cudaSuccess ends this.
void lose_device(cudaError_t error);

// Number of pending pieces of work in all streams.
int64_t pending_work();

// Used by launch(): puts a grid whose threads call `thread` into the stream. Fails like cudaLaunchKernel.
cudaError_t launch_kernel(Stream* stream, const char* name, dim3 blocks, dim3 threads, size_t dynamic,
                          std::function<void()> thread);
// Throws Fault unless a kernel in this stream may use the address: memory of its device, pinned memory, or null.
void check_argument(Stream* stream, const char* kernel, const void* p);

}  // namespace emulated

using cudaStream_t = emulated::Stream*;
using cudaEvent_t = emulated::Event*;
using cudaGraph_t = emulated::Graph*;
using cudaGraphExec_t = emulated::Graph*;

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  cudaUUID_t uuid;
  char name[256];
  int major, minor, multiProcessorCount, l2CacheSize, warpSize, maxThreadsPerBlock;
  size_t totalGlobalMem, sharedMemPerBlockOptin;
};

// runtime.cpp: devices, memory, copies
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);  // of the calling OS thread
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
const char* cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaMalloc(void** p, size_t bytes);
cudaError_t cudaFree(void* p);
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* p);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream);

// streams.cpp
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);  // of the calling thread
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

}  // namespace isonorm::gpu
