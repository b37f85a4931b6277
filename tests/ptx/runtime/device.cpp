// The device and its errors.
#include <cstring>
#include <string>

#include "tests/ptx/runtime/runtime.h"

namespace isonorm::ptx {
namespace {

thread_local cudaError_t last = cudaSuccess;
cudaError_t lost_error = cudaSuccess;
std::string lost_text;

}  // namespace

std::recursive_mutex& lock() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}
cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}
cudaError_t lost() { return lost_error; }

void lose(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::refused:
      lost_error = cudaErrorInvalidPtx;
      break;
    case Fault::Kind::address:
      lost_error = cudaErrorIllegalAddress;
      break;
    case Fault::Kind::misaligned:
      lost_error = cudaErrorMisalignedAddress;
      break;
    case Fault::Kind::other:
      lost_error = cudaErrorLaunchFailure;
      break;
  }
  lost_text = fault.what();
}

}  // namespace isonorm::ptx

using namespace isonorm::ptx;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : noted(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device != 0) return noted(cudaErrorInvalidDevice);
  *p = {};
  std::strcpy(p->name, "nvcc's PTX, interpreted on the CPU");
  p->uuid.bytes[0] = 1;
  p->major = 9;
  p->multiProcessorCount = 3;  // odd and small, as for the emulated device
  p->l2CacheSize = 1 << 20;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->totalGlobalMem = size_t{16} << 30;
  p->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t e) {
  if (e == lost_error && e != cudaSuccess) return lost_text.c_str();
  switch (e) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorLaunchOutOfResources:
      return "too many resources requested for launch";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    default:
      return "unrecognized error code";
  }
}
cudaError_t cudaGetLastError() {
  if (lost()) return lost();
  const cudaError_t e = last;
  last = cudaSuccess;
  return e;
}

}  // extern "C"
