// Shared by the kernels of products: which tile of the result a block computes, and how a number is stored.
#pragma once

#include "gpu/block.cuh"
#include "core/formulas/round_up.h"
#include "gpu/libraries/blas.h"

namespace isonorm::gpu {

// A side of a product: a with its rows, or b with its columns.
struct Side {
  int64_t along, deep;  // strides from row to row (b: column to column) and along the depth
  int64_t count;        // rows (b: columns)
  bool packs = false;   // bf16: 8 neighbours from a multiple of 8 on can be loaded by 16 bytes
};

struct Tiles {
  int64_t m, n, k;
  Side a, b;
  Batch batch;
  bool add;

  explicit Tiles(const Product& p)
      : m(p.m), n(p.n), k(p.k), a{p.a.row, p.a.column, p.m}, b{p.b.column, p.b.row, p.n}, batch(p.batch), add(p.add) {}
  int64_t count(int size) const { return batch.count * ceil_div(m, size) * ceil_div(n, size); }
};

// The tile of the calling block: its first row and column, and the offsets of its product's matrices.
struct Tile {
  int64_t row, column, a, b, out;

  __device__ __forceinline__ Tile(const Tiles& t, int size) {
    const auto down = static_cast<unsigned>(ceil_div(t.m, size)), across = static_cast<unsigned>(ceil_div(t.n, size));
    const unsigned index = blockIdx.x / across / down;
    a = b = 0;
    int64_t left = index;
    for (int d = t.batch.rank - 1; d >= 0; --d) {
      a += left % t.batch.size[d] * t.batch.a[d];
      b += left % t.batch.size[d] * t.batch.b[d];
      left /= t.batch.size[d];
    }
    row = int64_t{blockIdx.x / across % down} * size;
    column = int64_t{blockIdx.x % across} * size;
    out = index * t.m * t.n;
  }
};

// Stores N neighbouring numbers of row `row` from `column` on, or fewer at the end of the row. packs: n and the address
// of the result allow stores by packs.
template <int N, class U, class T, class A>
__device__ __forceinline__ void store_result(U* out, const Tiles& t, int64_t row, int64_t column, const A* v,
                                             const T* bias, bool packs) {
  if (row >= t.m || column >= t.n) return;
  U* const to = out + row * t.n + column;
  Pack<U, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    A sum = v[i];
    if (packs || column + i < t.n) {
      if (bias) sum += static_cast<A>(bias[column + i]);
      if (t.add) sum += static_cast<A>(to[i]);
    }
    pack.v[i] = static_cast<U>(sum);
  }
  if (packs) {
    store<N>(to, pack);
  } else {
    for (int i = 0; i < N && column + i < t.n; ++i) to[i] = pack.v[i];
  }
}

// Tiles of 128 x 128 are used if there are enough for a whole device.
inline bool takes_large_tiles(const Tiles& t) { return t.count(128) >= 128; }

// kernels/product_bf16.cu
void bf16_product(const Product& p, const Operands& o, const Stream& stream);

}  // namespace isonorm::gpu
