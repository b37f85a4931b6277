// Starts kernels; nothing else does.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "core/formulas/round_up.h"
#include "gpu/cuda.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

struct Shape {
  dim3 blocks, threads;
  size_t dynamic = 0;  // bytes of shared memory in addition to the kernel's static ones
};

// Blocks of `threads` threads, one thread for each of n elements, n >= 1. Throws if the grid would be too large.
Shape one_each(int64_t n, int threads = 256);
// n blocks of `threads` threads.
Shape blocks_of(int64_t n, int threads);

// Throws "softmax.rows: <CUDA's message> for 12 blocks of 256 threads, 0 bytes of shared memory" if the launch itself
// failed. With ISONORM_GPU_SYNC=1 in the environment it also waits for the kernel.
void finish_launch(cudaError_t status, const char* name, const Shape& shape, const Stream& stream);
// Reports the launch to the thread's recorders.
void begin_launch(const char* name, const Shape& shape, const Stream& stream);

// Starts kernel(arguments...). name: "<slot>.<kernel>", a literal. The caller must not pass a grid without blocks.
template <class... P, class... A>
void launch(const char* name, void (*kernel)(P...), const Shape& shape, const Stream& stream, const A&... arguments) {
  begin_launch(name, shape, stream);
  const OnDevice on(stream.index());
  std::tuple<P...> values(arguments...);
#ifdef ISONORM_GPU_EMULATED
  const auto check_pointer = [&](const auto& v) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(v)>>)
      emulated::check_argument(stream.handle(), name, v);
  };
  std::apply([&](const auto&... v) { (check_pointer(v), ...); }, values);
  const cudaError_t status = emulated::launch_kernel(stream.handle(), name, shape.blocks, shape.threads, shape.dynamic,
                                                     [=] { std::apply(kernel, values); });
  finish_launch(status, name, shape, stream);
#else
  const void* function = reinterpret_cast<const void*>(kernel);
  // Without this attribute a block has 48 KiB, including the shared memory that it declares. The attribute is never set
  // below what every device from 8.0 on allows: a graph may hold a launch of the kernel that needs more than this one.
  if (shape.dynamic > 40 << 10)
    finish_launch(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       std::max(100'864, static_cast<int>(shape.dynamic))),
                  name, shape, stream);
  std::apply(
      [&](auto&... v) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&v))..., nullptr};
        finish_launch(cudaLaunchKernel(function, shape.blocks, shape.threads, pointers, shape.dynamic, stream.handle()),
                      name, shape, stream);
      },
      values);
#endif
}

}  // namespace isonorm::gpu
