// The part of NCCL's interface that is used, in the words of nccl.h of 2.28.9. The header is not needed to build; if it
// is present, tests/gpu/device/nccl_test.cpp compares the two. The values have been the same since 2.14, the first
// version with communicators that never block.
#pragma once

#include "gpu/cuda.h"
#include "gpu/dynamic.h"

namespace isonorm::gpu::nccl {

struct Opaque;
using Comm = Opaque*;
struct Id {
  char bytes[128];
};

enum Result {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};
enum Type { int8 = 0 };

// The configuration of 2.14. A later library reads its size and version, and chooses the settings that it lacks by
// itself.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};

struct Api {
  Result (*get_unique_id)(Id*);
  Result (*comm_init_rank_config)(Comm*, int ranks, Id, int rank, Config*);
  Result (*comm_get_async_error)(Comm, Result*);
  Result (*comm_finalize)(Comm);
  Result (*comm_destroy)(Comm);
  Result (*comm_abort)(Comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*send)(const void*, size_t count, Type, int peer, Comm, cudaStream_t);
  Result (*recv)(void*, size_t count, Type, int peer, Comm, cudaStream_t);
  Result (*all_gather)(const void*, void*, size_t count, Type, Comm, cudaStream_t);
  const char* (*get_error_string)(Result);
  const char* (*get_last_error)(Comm);

  // Throws if a function is missing.
  explicit Api(const Library& library);
};

}  // namespace isonorm::gpu::nccl
