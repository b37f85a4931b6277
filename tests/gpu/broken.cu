// Kernels with mistakes that the emulation must find, each with its right form.
#include "tests/gpu/broken.h"

#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/tensor_core.cuh"

namespace isonorm::gpu {
namespace {

struct Row {
  float v[256];
};

// y = x reversed within each block, through shared memory.
template <bool kRight> __global__ void reverse(float* y, const float* x) {
  Row& row = shared<Row>();
  const unsigned t = threadIdx.x, n = blockDim.x;
  row.v[t] = x[blockIdx.x * n + t];
  if (kRight) __syncthreads();
  y[blockIdx.x * n + t] = row.v[n - 1 - t];
}

// y[block] = 3 sum of x over the block, in two rounds; the second round writes to the memory of the first.
template <bool kRight> __global__ void sum_twice(float* y, const float* x) {
  Row& room = shared<Row>();
  const unsigned t = threadIdx.x, n = blockDim.x;
  float total = 0;
  for (int round = 0; round < 2; ++round) {
    if (kRight) __syncthreads();
    room.v[t] = x[blockIdx.x * n + t] * static_cast<float>(round + 1);
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += room.v[(i + t) % n];
    total += sum;
  }
  if (t == 0) y[blockIdx.x] = total;
}

// The lanes of a warp exchange values through shared memory.
template <bool kRight> __global__ void neighbours(float* y, const float* x) {
  Row& row = shared<Row>();
  const unsigned t = threadIdx.x;
  row.v[t] = x[t];
  if (kRight) __syncwarp();
  y[t] = row.v[t ^ 1];
}

// A barrier that only some threads reach.
template <bool kRight> __global__ void some_leave(float* y, const float* x, int n) {
  const int t = static_cast<int>(threadIdx.x);
  if (!kRight && t >= n) return;
  Row& row = shared<Row>();
  row.v[t] = t < n ? x[t] : 0.f;
  __syncthreads();
  if (t < n) y[t] = row.v[n - 1 - t];
}

// Half of the block waits at one barrier, half at the other.
template <bool kRight> __global__ void two_barriers(float* y) {
  if (kRight || threadIdx.x < blockDim.x / 2)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1;
}

// The mask names a whole warp, but only half of it arrives.
template <bool kRight> __global__ void half_shuffle(float* y, const float* x) {
  const unsigned t = threadIdx.x, mask = kRight ? 0xffffu : ~0u;
  if (t % 32 < 16) {
    float v = x[t];
    for (int by = 8; by > 0; by /= 2) v += __shfl_xor_sync(mask, v, by);
    y[t] = v;
  }
}

// Writes one element too many, to device memory and to shared memory.
template <bool kRight> __global__ void one_more(float* y, int n) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (kRight ? t < n : t <= n) y[t] = 1;
}
template <bool kRight> __global__ void one_more_shared(float* y, int n) {
  float* row = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  if (kRight ? t < n : t <= n) row[t] = 1;
  __syncthreads();
  if (t < n) y[t] = row[t];
}

// Counts over blocks without an atomic addition. y[0] must be 0 at first.
template <bool kRight> __global__ void count_all(float* y) {
  if (kRight)
    atomicAdd(y, 1.f);
  else
    *y = *y + 1.f;
}

struct Chunk {
  Pack<float, 4> v[32];
};

// y = x by asynchronous copies.
template <bool kRight> __global__ void copy_beside(float* y, const float* x) {
  Chunk& chunk = shared<Chunk>();
  const unsigned t = threadIdx.x;
  copy_async(&chunk.v[t], x + 4 * t);
  commit_copies();
  if (kRight) wait_copies<0>();
  store<4>(y + 4 * t, chunk.v[t]);
  if (!kRight) wait_copies<0>();
}

// Packs at an address that is not a multiple of 16.
template <bool kRight> __global__ void packs(float* y, const float* x) {
  store<4>(y + 4 * threadIdx.x, load<4>(x + 4 * threadIdx.x + (kRight ? 0 : 1)));
}

}  // namespace
}  // namespace isonorm::gpu

namespace isonorm::test {

void start(std::string_view mistake, bool right, const gpu::Stream& stream, float* y, const float* x, int n) {
  using namespace gpu;
  const auto go = [&](const char* name, auto good, auto bad, const Shape& shape, auto... arguments) {
    if (mistake == name) launch(name, right ? good : bad, shape, stream, arguments...);
  };
  go("no_barrier", &reverse<true>, &reverse<false>, {2, 64}, y, x);
  go("no_second_barrier", &sum_twice<true>, &sum_twice<false>, {2, 64}, y, x);
  go("no_warp_barrier", &neighbours<true>, &neighbours<false>, {1, 64}, y, x);
  go("some_leave", &some_leave<true>, &some_leave<false>, {1, 64}, y, x, 50);
  go("two_barriers", &two_barriers<true>, &two_barriers<false>, {1, 64}, y);
  go("half_shuffle", &half_shuffle<true>, &half_shuffle<false>, {1, 64}, y, x);
  go("past_the_end", &one_more<true>, &one_more<false>, {5, 256}, y, n);
  go("past_shared", &one_more_shared<true>, &one_more_shared<false>, {1, 128, 400}, y, 100);
  go("no_atomic", &count_all<true>, &count_all<false>, {4, 64}, y);
  go("no_wait_for_copies", &copy_beside<true>, &copy_beside<false>, {1, 32}, y, x);
  const size_t most = right ? 231936 : 232448;  // with the struct of 512 bytes
  go("too_much_shared", &copy_beside<true>, &copy_beside<true>, {1, 32, most}, y, x);
  go("other_alignment", &packs<true>, &packs<false>, {1, 32}, y, x);
}

}  // namespace isonorm::test
