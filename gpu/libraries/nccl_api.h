// NCCL's interface as far as it is used, in the words of nccl.h of 2.28.9, which is not needed to build: tests/gpu/device/nccl_test.cpp
// compares them where it is there. Its values have been these since 2.14, the first version with communicators that never block.
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

// That of 2.14: a later library takes its size and version for what they say, and chooses by itself what is not in it.
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

  // Throws where a function is missing.
  explicit Api(const Library& library);
};

}  // namespace isonorm::gpu::nccl
