// Runs grids of emulated threads: block after block (block_run.h), in an order chosen by a seed, on one or more OS
// threads.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "tests/emulated_gpu/device.h"

namespace isonorm::gpu::emulated {

// A forbidden action of a kernel. The message has its place and the barriers at which other threads wait.
struct Fault : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Grid {
  const char* name;
  dim3 blocks, threads;
  size_t dynamic;                    // bytes of dynamic shared memory
  void (*thread_main)(const void*);  // one thread
  const void* closure;
};

struct Schedule {
  uint64_t seed = 1;  // 0: threads and blocks in ascending order
  int os_threads = 1;
};
Schedule& schedule();  // for grids that begin from now on

// Throws Fault, also if no device accepts the grid.
void run(const Grid& grid);
// The reason why no device accepts the grid; null if devices do.
const char* refusal_of(dim3 blocks, dim3 threads, size_t dynamic);

}  // namespace isonorm::gpu::emulated
