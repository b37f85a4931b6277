// The part of CUDA's runtime that gpu/ uses, in the place of libcudart_static: one device, whose kernels the
// interpreter executes. Work is done when it is given to a stream, or recorded if the stream is captured. The emulation
// (tests/emulated_gpu) tests streams: late work, two devices, rules on host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <vector>

#include "tests/ptx/program.h"

namespace isonorm::ptx {

using Work = std::vector<std::function<void()>>;

// Held by every call of the runtime.
std::recursive_mutex& lock();
// Returns the error and keeps it for cudaGetLastError().
cudaError_t noted(cudaError_t error);
// The error of a kernel that failed; every call returns it from then on.
cudaError_t lost();
void lose(const Fault& fault);
// Does the work now or records it.
cudaError_t give(cudaStream_t stream, std::function<void()> work);
cudaError_t do_now(const std::function<void()>& work);

}  // namespace isonorm::ptx

struct CUstream_st {
  bool is_captured = false;
  isonorm::ptx::Work recorded;
};
struct CUgraph_st {
  isonorm::ptx::Work work;
};
