// copy_on: dst = src, src broadcast to dst's shape, any pair of dtypes and any strides.
//
// map_kernel (gpu/elementwise.cuh): by packs if both tensors are contiguous along the same innermost dimension, else by
// elements. Reads and writes every element once.
//
// copy_tiles: if the contiguous dimensions differ (a transposed matrix), one tensor's accesses would be a row apart in
// either order. Therefore a block reads a square tile along the source's rows and writes it along the destination's.
// There is a block of 256 threads for each tile of 32 x 32 elements, or of 64 x 64 elements of at most two bytes, so
// that each thread has 4 or 16 loads in flight. Rows of the tile in shared memory are a word longer than its width:
// columns are in different banks.
//
// round_each: f32 tensors to bf16; a launch processes a table of copies (gpu/table.cuh). Reads and writes every element
// once, by packs if both begin at multiples of 16 bytes.
#include <optional>

#include "core/formulas/convert.h"
#include "gpu/elementwise.cuh"
#include "gpu/slots.h"
#include "gpu/table.cuh"

namespace isonorm::gpu {
namespace {

template <class To, class From> struct Convert {
  __device__ __forceinline__ To operator()(From v) const { return convert<To>(v); }
};

// The destination has stride 1 along dimension i, the source along dimension j. `rest` walks over the other dimensions.
struct Tiles {
  Walk<2> rest;
  int64_t size_i, size_j, dst_j, src_i;
};

template <class T> inline constexpr int kTile = sizeof(T) <= 2 ? 64 : 32;
template <class T> struct TileOf { T at[kTile<T>][kTile<T> + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)]; };  // [i][j]

template <class To, class From> __global__ void __launch_bounds__(256) copy_tiles(To* dst, const From* src, Tiles t) {
  constexpr int kSide = kTile<To>, kRows = 8;  // one row for each warp at a time
  auto& tile = shared<TileOf<To>>().at;
  const int64_t along_i = ceil_div(t.size_i, kSide), along_j = ceil_div(t.size_j, kSide);
  const int64_t block = blockIdx.x, i = block % along_i * kSide, j = block / along_i % along_j * kSide;
  int64_t at[2];
  t.rest.place(block / along_i / along_j, at);
#pragma unroll
  for (int r = 0; r < kSide; r += kRows)
#pragma unroll
    for (int c = 0; c < kSide; c += 32) {
      const int ti = r + warp(), tj = c + lane();
      if (i + ti < t.size_i && j + tj < t.size_j)
        tile[ti][tj] = convert<To>(src[at[1] + (i + ti) * t.src_i + (j + tj)]);
    }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kSide; r += kRows)
#pragma unroll
    for (int c = 0; c < kSide; c += 32) {
      const int tj = r + warp(), ti = c + lane();
      if (i + ti < t.size_i && j + tj < t.size_j) dst[at[0] + (j + tj) * t.dst_j + (i + ti)] = tile[ti][tj];
    }
}

// The tiles of dst and src; none if their contiguous dimensions are the same or too short.
std::optional<Tiles> tiles_of(const Loop<2>& loop) {
  constexpr int64_t kShort = 8;
  int i = -1, j = -1;
  for (int d = 0; d < loop.rank; ++d) {
    if (loop.stride[0][d] == 1) i = d;
    if (loop.stride[1][d] == 1) j = d;
  }
  if (i < 0 || j < 0 || i == j || loop.size[i] < kShort || loop.size[j] < kShort) return {};
  Dims shape, strides[2];
  for (int d = 0; d < loop.rank; ++d) {
    if (d == i || d == j) continue;
    for (int n = 0; n < 2; ++n) strides[n].push_back(loop.stride[n][d]);
    shape.push_back(loop.size[d]);
  }
  return Tiles{Walk<2>(Loop<2>(shape, {strides[0], strides[1]})), loop.size[i], loop.size[j], loop.stride[0][j],
               loop.stride[1][i]};
}

struct Rounding {
  const float* from;
  bf16* to;
  int64_t count;
  bool packs;
};

__global__ void __launch_bounds__(kTableThreads) round_pieces(const Table<Rounding> table) {
  constexpr int N = kPack<bf16>;
  const int item = table.find(blockIdx.x);
  const Rounding& r = table.items[item];
  const auto pack = [&](int64_t i) {
    float v[N];
    load_all(v, r.from + i);
    Pack<bf16, N> rounded;
#pragma unroll
    for (int k = 0; k < N; ++k) rounded.v[k] = bf16(v[k]);
    store(r.to + i, rounded);
  };
  for_piece<N>(blockIdx.x - table.first[item], r.count, r.packs, pack, [&](int64_t i) { r.to[i] = bf16(r.from[i]); });
}

}  // namespace

void round_each(std::span<const Tensor> dst, std::span<const Tensor> src) {
  Table<Rounding> table;
  for (size_t i = 0; i < src.size(); ++i) {
    const int64_t n = src[i].numel();
    if (n == 0) continue;
    const float* from = src[i].data<float>();
    bf16* to = write<bf16>(dst[i]);
    table.add({from, to, n, aligned(from, to)}, ceil_div(n, kPiece));
    if (table.full()) launch_table("round_each.pieces", &round_pieces, table, src[i]);
  }
  if (!src.empty()) launch_table("round_each.pieces", &round_pieces, table, src.back());
}

void copy(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  visit_all(dst.dtype(), [&]<class To>() {
    visit_all(src.dtype(), [&]<class From>() {
      To* to = write<To>(dst);
      if constexpr (std::is_same_v<To, From> || (!std::is_integral_v<To> && !std::is_integral_v<From>))
        if (const std::optional<Tiles> t = tiles_of(loop_over(dst, src))) {
          const int64_t blocks = ceil_div(t->size_i, kTile<To>) * ceil_div(t->size_j, kTile<To>) * t->rest.count;
          launch("copy.tiles", &copy_tiles<To, From>, blocks_of(blocks, 256), stream_of(dst), to, src.data<From>(), *t);
          return;
        }
      map("copy.elements", Convert<To, From>{}, dst, to, Operand<From>(src));
    });
  });
}

}  // namespace isonorm::gpu
