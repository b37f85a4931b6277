// Runs grids of emulated threads: block after block (block_run.h), in an order by seed, on one OS thread or several.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "tests/emulated_gpu/device.h"

namespace isonorm::gpu::emulated {

// What a kernel did that no kernel may do. Says where, and what the other threads are waiting for.
struct Fault : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Grid {
  const char* name;
  dim3 blocks, threads;
  size_t dynamic;                    // bytes of shared memory
  void (*thread_main)(const void*);  // one thread
  const void* closure;
};

struct Schedule {
  uint64_t seed = 1;  // 0: threads and blocks in ascending order
  int os_threads = 1;
};
Schedule& schedule();  // of grids that begin from now on

// Throws Fault, also where the grid is one that no device takes.
void run(const Grid& grid);
// What no device takes, in words; null where it does.
const char* refusal_of(dim3 blocks, dim3 threads, size_t dynamic);

}  // namespace isonorm::gpu::emulated
