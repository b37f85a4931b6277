// Products of 64 x 64 tiles in bf16 by the four warps of a block, with gpu/tensor_core.cuh. After rounding, a lane's
// part of a product has the layout of the next product's left operand, so a chain of products needs no memory for
// intermediate results.
#pragma once

#include "gpu/heads.cuh"
#include "gpu/tensor_core.cuh"

namespace isonorm::gpu::tiles {

inline constexpr int kSize = 64, kThreads = 128;

// 64 rows of 64 elements. The eight 16-byte chunks of a row have another order in each of eight rows, so that a column
// of chunks uses all banks of shared memory.
struct Tile {
  Pack<bf16, 8> chunk[kSize * kSize / 8];
  __device__ __forceinline__ Pack<bf16, 8>& at(int row, int c) { return chunk[row * 8 + (c ^ row % 8)]; }
};

// Begins to copy 64 rows from `first` on, with zeros after the last row.
__device__ __forceinline__ void copy_tile(Tile& to, const Rows<const bf16>& from, int first) {
  const int row = static_cast<int>(threadIdx.x) / 8, c = static_cast<int>(threadIdx.x) % 8;
  const bf16* p = from.data + c * 8;
#pragma unroll
  for (int k = 0; k < kSize; k += kThreads / 8) {
    const int at = first + row + k;
    const bool inside = at < from.count;
    copy_async(&to.at(row + k, c), inside ? p + at * from.stride : p, inside);
  }
}

// Elements 16 c to 16 c + 15 of 16 rows from `row` on: as a, as b of a product with their transpose, as b.
__device__ __forceinline__ Quad left(Tile& t, int row, int c) {
  return load_matrices(&t.at(row + lane() % 16, 2 * c + lane() / 16));
}
__device__ __forceinline__ Quad right_of_rows(Tile& t, int row, int c) {
  return load_matrices(&t.at(row + lane() / 16 * 8 + lane() % 8, 2 * c + lane() / 8 % 2));
}
__device__ __forceinline__ Quad right(Tile& t, int row, int c) {
  return load_transposed(&t.at(row + lane() % 16, 2 * c + lane() / 16));
}

// A warp's strip of 16 kM rows: 64 elements as left operand, and a lane's numbers of 64 columns.
template <int kM> using Left = Quad[kM][kSize / 16];
template <int kM> using Strip = float[kM][kSize / 8][4];
// Row and column, in the strip, of number i of [m][n].
__device__ __forceinline__ int row_of(int m, int i) { return 16 * m + 8 * (i / 2) + lane() / 4; }
__device__ __forceinline__ int column_of(int n, int i) { return 8 * n + 2 * (lane() % 4) + i % 2; }

// Calls f(m, n, i) for every number of a strip.
template <int kM, class F> __device__ __forceinline__ void for_strip(const F& f) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) f(m, n, i);
}

// Loads rows of a tile, from `row` on.
template <int kM> __device__ __forceinline__ void load_left(Left<kM>& a, Tile& t, int row) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int c = 0; c < kSize / 16; ++c) a[m][c] = left(t, row + 16 * m, c);
}

// s += a t^T
template <int kM> __device__ __forceinline__ void add_scores(Strip<kM>& s, const Left<kM>& a, Tile& t) {
#pragma unroll
  for (int c = 0; c < kSize / 16; ++c)
#pragma unroll
    for (int n = 0; n < kSize / 16; ++n) {
      const Quad b = right_of_rows(t, 16 * n, c);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(s[m][2 * n], a[m][c], b.r[0], b.r[1]);
        multiply_add(s[m][2 * n + 1], a[m][c], b.r[2], b.r[3]);
      }
    }
}

// out += p t, with p rounded to bf16
template <int kM> __device__ __forceinline__ void add_product(Strip<kM>& out, const Strip<kM>& p, Tile& t) {
#pragma unroll
  for (int c = 0; c < kSize / 16; ++c) {
    Quad a[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* from = p[m][2 * c + i / 2] + i % 2 * 2;
        a[m].r[i] = two_bf16(from[0], from[1]);
      }
#pragma unroll
    for (int n = 0; n < kSize / 16; ++n) {
      const Quad b = right(t, 16 * c, n);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(out[m][2 * n], a[m], b.r[0], b.r[1]);
        multiply_add(out[m][2 * n + 1], a[m], b.r[2], b.r[3]);
      }
    }
  }
}

// Writes a warp's strip to the rows from `first` on, through the warp's own rows (from `row` on) of a tile that no warp
// reads any more.
template <int kM>
__device__ __forceinline__ void write_strip(const Rows<bf16>& to, int first, const Strip<kM>& v, Tile& t, int row) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const uint32_t two = two_bf16(v[m][n][i], v[m][n][i + 1]);
        store(&t.at(row + row_of(m, i), n).v[column_of(0, 0)], __builtin_bit_cast(Pack<bf16, 2>, two));
      }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 16 * kM; k += 4) {
    const int at = k + lane() / 8, c = lane() % 8;
    if (first + at < to.count) store(to.row(first + at) + c * 8, t.at(row + at, c));
  }
}

}  // namespace isonorm::gpu::tiles
