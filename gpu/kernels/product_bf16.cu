// Products of matrices in bf16 by tensor cores, accumulated in f32: out [m, n] of bf16 or f32 = a [m, k] b [k, n] + bias,
// of any strides.
//
// product.bf16: a block for each tile of 64 x 64 (4 warps) or 128 x 128 (8 warps) of the result; a warp has 32 columns of
// half of its rows. The depth goes in slabs of 64, of which two are on their way (cp.async) while a third is multiplied:
// one barrier a slab. In shared memory an operand lies as in the tensor, rows of depth or depth of rows, and is turned by
// the load of a fragment; the chunks of 16 bytes are exchanged within each eight rows, so that the eight of a load lie
// in different banks. Where an operand does not begin or end at multiples of 16 bytes, its chunks are put together from
// single elements. The tile's size does not change the order of a sum: 16 of the depth after 16.
#include "gpu/launch.h"
#include "gpu/slots.h"
#include "gpu/tensor_core.cuh"
#include "gpu/kernels/tiled_product.cuh"

namespace isonorm::gpu {
namespace {

constexpr int kSlab = 64, kStages = 3, kChunk = 8;

template <int kTile> struct Slab {
  using Chunks = Pack<bf16, kChunk>[kTile * kSlab / kChunk];
  Chunks a, b;
};

// One operand of a block's tile.
template <int kTile> class Panel {
 public:
  using Chunks = typename Slab<kTile>::Chunks;

  __device__ __forceinline__ Panel(const bf16* p, const Side& s, int64_t first, int64_t depth)
      : p_(p + first * s.along), side_(s), left_(s.count - first), depth_(depth), by_depth_(s.deep == 1) {}

  // Begins to copy the slab from `from` on, zeros where there is nothing.
  __device__ __forceinline__ void copy(Chunks& to, int64_t from) const {
    if (side_.packs) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const Place at(*this, i, from);
        const bool inside = at.along < left_ && at.depth < depth_;
        copy_async(&to[at.index], inside ? p_ + at.along * side_.along + at.depth * side_.deep : p_, inside);
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < kEach; ++i) {
        const Place at(*this, i, from);
        const bf16* const source = p_ + at.along * side_.along + at.depth * side_.deep;
        const int64_t there =
            at.along < left_ && at.depth < depth_ ? by_depth_ ? depth_ - at.depth : left_ - at.along : 0;
        Pack<bf16, kChunk> pack{};
#pragma unroll
        for (int e = 0; e < kChunk; ++e)
          if (e < there) pack.v[e] = source[e];
        store(to[at.index].v, pack);
      }
    }
  }

  // 16 rows from `row` on and 16 of the depth from 16 d on, as the left operand.
  __device__ __forceinline__ Quad left(Chunks& t, int row, int d) const {
    if (by_depth_) return load_matrices(&t[index(row + lane() % 16, 2 * d + lane() / 16)]);
    return load_transposed(&t[index(16 * d + lane() / 16 * 8 + lane() % 8, row / 8 + lane() / 8 % 2)]);
  }
  // 16 columns from `column` on, as two right operands.
  __device__ __forceinline__ Quad right(Chunks& t, int column, int d) const {
    if (by_depth_) return load_matrices(&t[index(column + lane() / 16 * 8 + lane() % 8, 2 * d + lane() / 8 % 2)]);
    return load_transposed(&t[index(16 * d + lane() % 16, column / 8 + lane() / 16)]);
  }

 private:
  static constexpr int kThreads = 2 * kTile, kDepthChunks = kSlab / kChunk, kTileChunks = kTile / kChunk;
  static constexpr int kEach = kTile * kDepthChunks / kThreads;  // chunks that a thread copies

  // The thread's chunk i of the slab from `from` on: its first element in the operand, and where it goes.
  struct Place {
    int64_t along, depth;
    int index;

    __device__ __forceinline__ Place(const Panel& panel, int i, int64_t from) {
      const int at = static_cast<int>(threadIdx.x) + i * kThreads, wide = panel.by_depth_ ? kDepthChunks : kTileChunks;
      const int line = at / wide, first = at % wide * kChunk;
      along = panel.by_depth_ ? line : first;
      depth = from + (panel.by_depth_ ? first : line);
      index = panel.index(line, at % wide);
    }
  };

  __device__ __forceinline__ int index(int line, int chunk) const {
    return line * (by_depth_ ? kDepthChunks : kTileChunks) + (chunk ^ line % 8);
  }

  const bf16* p_;
  const Side& side_;
  const int64_t left_, depth_;
  const bool by_depth_;
};

template <int kTile, class U>
__global__ void __launch_bounds__(2 * kTile, kTile == 128 ? 2 : 3)
    multiply(U* out, const bf16* a, const bf16* b, const bf16* bias, const Tiles tiles, bool pairs) {
  constexpr int kRows = kTile / 32;  // a warp's, by 16
  auto* const slabs = dynamic_shared<Slab<kTile>>();
  const Tile tile(tiles, kTile);
  const Panel<kTile> left(a + tile.a, tiles.a, tile.row, tiles.k), right(b + tile.b, tiles.b, tile.column, tiles.k);
  const int row = warp() % 2 * (kTile / 2), column = warp() / 2 * 32;
  const auto copy = [&](int64_t slab) {
    if (slab * kSlab < tiles.k) {
      left.copy(slabs[slab % kStages].a, slab * kSlab);
      right.copy(slabs[slab % kStages].b, slab * kSlab);
    }
    commit_copies();
  };
  float sums[kRows][4][4] = {};
  for (int s = 0; s < kStages - 1; ++s) copy(s);
  for (int64_t s = 0; s * kSlab < tiles.k; ++s) {
    wait_copies<kStages - 2>();
    __syncthreads();  // the slab is there for all, and all are done with the one before
    copy(s + kStages - 1);
    Slab<kTile>& slab = slabs[s % kStages];
#pragma unroll
    for (int d = 0; d < kSlab / 16; ++d) {
      Quad x[kRows], y[2];
#pragma unroll
      for (int i = 0; i < kRows; ++i) x[i] = left.left(slab.a, row + 16 * i, d);
#pragma unroll
      for (int j = 0; j < 2; ++j) y[j] = right.right(slab.b, column + 16 * j, d);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], x[i], y[j / 2].r[j % 2 * 2], y[j / 2].r[j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        store_result<2>(out + tile.out, tiles, tile.row + row + 16 * i + 8 * h + lane() / 4,
                        tile.column + column + 8 * j + 2 * (lane() % 4), &sums[i][j][2 * h], bias, pairs);
}

// Whether chunks of the operand, from multiples of 8 on, lie at multiples of 16 bytes and none is cut by the end.
bool has_packs(const void* p, const Side& s, int64_t depth, const Batch& batch, const int64_t* strides) {
  bool packs =
      aligned(p) && (s.deep == 1 ? s.along : s.deep) % kChunk == 0 && (s.deep == 1 ? depth : s.count) % kChunk == 0;
  for (int d = 0; d < batch.rank; ++d) packs &= batch.size[d] == 1 || strides[d] % kChunk == 0;
  return packs;
}

template <class U> void run(const Product& p, const Operands& o, const Stream& stream) {
  Tiles tiles(p);
  tiles.a.packs = has_packs(o.a, tiles.a, p.k, p.batch, p.batch.a);
  tiles.b.packs = has_packs(o.b, tiles.b, p.k, p.batch, p.batch.b);
  U* const out = static_cast<U*>(o.out);
  const auto *a = static_cast<const bf16*>(o.a), *b = static_cast<const bf16*>(o.b);
  const auto* bias = static_cast<const bf16*>(o.bias);
  const bool pairs = reinterpret_cast<uintptr_t>(out) % (2 * sizeof(U)) == 0 && p.n % 2 == 0;
  const auto start = [&]<int kTile>() {
    Shape shape = blocks_of(tiles.count(kTile), 2 * kTile);
    shape.dynamic = kStages * sizeof(Slab<kTile>);
    launch("product.bf16", &multiply<kTile, U>, shape, stream, out, a, b, bias, tiles, pairs);
  };
  takes_large_tiles(tiles) ? start.template operator()<128>() : start.template operator()<64>();
}

}  // namespace

void bf16_product(const Product& p, const Operands& o, const Stream& stream) {
  p.out == DType::f32 ? run<float>(p, o, stream) : run<bf16>(p, o, stream);
}

}  // namespace isonorm::gpu
