// Products of matrices in bf16 by tensor cores, accumulated in f32: out [m, n] of bf16 or f32 = a [m, k] b [k, n] +
// bias, of any strides.
//
// product.bf16: a block for each tile of the result, 64 x 64 (4 warps) or 128 x 128 (8 warps); a warp has 32 columns of
// half of its rows. The depth is processed in slabs of 64: two are being copied (cp.async) while a third is multiplied,
// with one barrier a slab. In shared memory an operand has the order of the tensor, rows of depth or depth of rows; the
// load of a fragment transposes it if necessary. The chunks of 16 bytes are permuted within each eight rows, so that
// the eight chunks of a load are in different banks. If an operand does not begin or end at multiples of 16 bytes, its
// chunks are put together from single elements. The tile's size does not change the order of a sum: 16 of the depth
// after 16.
#include "gpu/launch.h"
#include "gpu/rows.cuh"
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

// One operand of a block's tile, slab after slab. kByDepth: its lines are its rows (b: columns), with chunks of
// neighbours along the depth. Else each line has one depth, with chunks of neighbouring rows (b: columns).
template <int kTile, bool kByDepth> class Panel {
 public:
  using Chunks = typename Slab<kTile>::Chunks;

  __device__ __forceinline__ Panel(const bf16* p, const Side& s, int64_t first, int64_t depth) : packs_(s.packs) {
    const int line = static_cast<int>(threadIdx.x) / kWide, chunk = static_cast<int>(threadIdx.x) % kWide;
    const int along = kByDepth ? line : chunk * kChunk, deep = kByDepth ? chunk * kChunk : line;
    from_ = p + (first + along) * s.along + deep * s.deep;
    step_ = kLines * (kByDepth ? s.along : s.deep);
    slab_ = kSlab * s.deep;
    along_ = s.count - first - along;
    depth_ = depth - deep;
    index_ = index(line, chunk);
  }

  // Begins to copy the next slab; zeros beyond the operand's end.
  __device__ __forceinline__ void copy(Chunks& to) {
    if (packs_) {
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        copy_async(&to[index_ + i * kThreads], from_ + i * step_, there(i) > 0);  // otherwise nothing is read
    } else {
#pragma unroll 1
      for (int i = 0; i < kEach; ++i) {
        Pack<bf16, kChunk> pack{};
#pragma unroll
        for (int e = 0; e < kChunk; ++e)
          if (e < there(i)) pack.v[e] = from_[i * step_ + e];
        store(to[index_ + i * kThreads].v, pack);
      }
    }
    from_ += slab_;
    depth_ -= kSlab;
  }

  // The left operand: 16 rows from row + 16 i on (row is a multiple of a warp's rows), and 16 of the depth from 16 d
  // on. i and d change separate bits of a chunk's index, so they enter by an exclusive or with a constant.
  __device__ __forceinline__ Quad left(Chunks& t, int row, int i, int d) const {
    if constexpr (kByDepth)
      return load_matrices(&t[(index(row + lane() % 16, lane() / 16) ^ 2 * d) + 16 * i * kWide]);
    else
      return load_transposed(
          &t[(index(lane() / 16 * 8 + lane() % 8, row / 8 + lane() / 8 % 2) ^ 2 * i) + 16 * d * kWide]);
  }
  // Two right operands: 16 columns from column + 16 j on.
  __device__ __forceinline__ Quad right(Chunks& t, int column, int j, int d) const {
    if constexpr (kByDepth)
      return load_matrices(&t[(index(column + lane() / 16 * 8 + lane() % 8, lane() / 8 % 2) ^ 2 * d) + 16 * j * kWide]);
    else
      return load_transposed(&t[(index(lane() % 16, column / 8 + lane() / 16) ^ 2 * j) + 16 * d * kWide]);
  }

 private:
  static constexpr int kThreads = 2 * kTile, kWide = (kByDepth ? kSlab : kTile) / kChunk;  // chunks of a line
  static constexpr int kLines = kThreads / kWide;                  // lines that all threads copy at a time
  static constexpr int kEach = kTile * kSlab / kChunk / kThreads;  // chunks that a thread copies
  static_assert(kLines % 8 == 0);  // so that all chunks of a thread have the same place among eight

  // The index of a chunk in shared memory.
  static __device__ __forceinline__ int index(int line, int chunk) { return line * kWide + (chunk ^ line % 8); }
  // The number of elements from the thread's chunk i to the end of its line; 0 if there is no such line.
  __device__ __forceinline__ int64_t there(int i) const {
    return (kByDepth ? along_ : depth_) > i * kLines ? kByDepth ? depth_ : along_ : 0;
  }

  const bf16* from_;       // the thread's first chunk of the next slab
  int64_t step_, slab_;    // from chunk to chunk, from slab to slab
  int64_t along_, depth_;  // rows (b: columns) and depth that are left from there on
  int index_;
  bool packs_;
};

template <int kTile, bool kLeft, bool kRight, class U>
__global__ void __launch_bounds__(2 * kTile, kTile == 128 ? 2 : 3)
    multiply(U* out, const bf16* a, const bf16* b, const bf16* bias, const Tiles tiles, bool pairs) {
  constexpr int kRows = kTile / 32;  // a warp's rows, in units of 16
  auto* const slabs = dynamic_shared<Slab<kTile>>();
  const Tile tile(tiles, kTile);
  Panel<kTile, kLeft> left(a + tile.a, tiles.a, tile.row, tiles.k);
  Panel<kTile, kRight> right(b + tile.b, tiles.b, tile.column, tiles.k);
  const int row = warp() % 2 * (kTile / 2), column = warp() / 2 * 32;
  const int count = static_cast<int>(ceil_div(tiles.k, kSlab));
  const auto copy = [&](int slab) {
    if (slab < count) {
      left.copy(slabs[slab % kStages].a);
      right.copy(slabs[slab % kStages].b);
    }
    commit_copies();
  };
  float sums[kRows][4][4] = {};
  for (int s = 0; s < kStages - 1; ++s) copy(s);
  for (int s = 0; s < count; ++s) {
    wait_copies<kStages - 2>();
    __syncthreads();  // the slab has arrived, and all are done with the previous one
    copy(s + kStages - 1);
    Slab<kTile>& slab = slabs[s % kStages];
#pragma unroll
    for (int d = 0; d < kSlab / 16; ++d) {
      Quad x[kRows], y[2];
#pragma unroll
      for (int i = 0; i < kRows; ++i) x[i] = left.left(slab.a, row, i, d);
#pragma unroll
      for (int j = 0; j < 2; ++j) y[j] = right.right(slab.b, column, j, d);
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

// True if the operand's chunks, from multiples of 8 on, lie at multiples of 16 bytes and none is cut by the end.
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
  const auto start = [&]<int kTile, bool kLeft, bool kRight>() {
    Shape shape = blocks_of(tiles.count(kTile), 2 * kTile);
    shape.dynamic = kStages * sizeof(Slab<kTile>);
    launch("product.bf16", &multiply<kTile, kLeft, kRight, U>, shape, stream, out, a, b, bias, tiles, pairs);
  };
  const bool large = takes_large_tiles(tiles);
  visit_bool(tiles.a.deep == 1, [&]<bool kLeft>() {
    visit_bool(tiles.b.deep == 1, [&]<bool kRight>() {
      large ? start.template operator()<128, kLeft, kRight>() : start.template operator()<64, kLeft, kRight>();
    });
  });
}

}  // namespace

void bf16_product(const Product& p, const Operands& o, const Stream& stream) {
  p.out == DType::f32 ? run<float>(p, o, stream) : run<bf16>(p, o, stream);
}

}  // namespace isonorm::gpu
