#include "tests/gpu/primitives.h"

#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/tensor_core.cuh"

namespace isonorm::gpu {
namespace {

struct Room {
  float of_warp[32];
};

__global__ void sums(float* y, const float* x) {
  Room& room = shared<Room>();
  const float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  const float sum = block_reduce<Plus>(v, room.of_warp), top = block_reduce<Larger>(v, room.of_warp);
  if (threadIdx.x == 0) {
    y[blockIdx.x] = sum;
    y[gridDim.x + blockIdx.x] = top;
  }
}

struct Tiles {
  alignas(16) bf16 a[16][16], b[16][8];
};

__global__ void product(float* out, const float* a, const float* b) {
  Tiles& t = shared<Tiles>();
  const int l = lane();
  for (int i = l; i < 256; i += 32) t.a[i / 16][i % 16] = bf16(a[i]);
  for (int i = l; i < 128; i += 32) t.b[i / 8][i % 8] = bf16(b[i]);
  __syncwarp();
  const Quad left = load_matrices(&t.a[l % 16][l / 16 * 8]);
  const Quad right = load_transposed(&t.b[l % 16][0]);  // the first two of its matrices are b
  float c[4] = {};
  multiply_add(c, left, right.r[0], right.r[1]);
  for (int i = 0; i < 4; ++i) out[(l / 4 + 8 * (i / 2)) * 8 + 2 * (l % 4) + i % 2] = c[i];
}

__global__ void add_one(float* y, const float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i] + 1;
}

__global__ void nothing() {}

}  // namespace
}  // namespace isonorm::gpu

namespace isonorm::test {
using namespace gpu;

void start_sums(const Stream& stream, float* y, const float* x, int blocks) {
  launch("test.sums", &sums, blocks_of(blocks, 256), stream, y, x);
}
void start_product(const Stream& stream, float* c, const float* a, const float* b) {
  launch("test.product", &product, {1, 32}, stream, c, a, b);
}
void start_add_one(const Stream& stream, float* y, const float* x, int n) {
  launch("test.add_one", &add_one, one_each(n), stream, y, x, n);
}
void start_empty(const Stream& stream, int64_t blocks, unsigned threads, size_t dynamic) {
  launch("test.nothing", &nothing, {dim3(static_cast<unsigned>(blocks)), threads, dynamic}, stream);
}

}  // namespace isonorm::test
