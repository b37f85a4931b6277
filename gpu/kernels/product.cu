// Products of matrices in f32 and f64, out [m, n] = a [m, k] b [k, n] + bias, of any strides, and sums of columns.
//
// product.numbers: a block of 256 threads for each tile of the result, 64 x 64 or, in f32, 128 x 128; each thread has 4
// x 4 or 8 x 8 of its numbers. The block reads a and b in slabs of 16 of the depth, each number of a slab once, with
// neighbouring threads along the contiguous direction of the operand. Shared memory has two buffers: the block fills
// one while it multiplies the other, with one barrier a slab. A thread reads its rows and columns there by packs of 16
// bytes. Large tiles read each operand half as often; they are used if they give work to a whole device. Every sum is
// in the order of k either way, so its bits do not depend on the tile. Neighbouring tiles are neighbouring blocks, so
// that they find a in the cache.
//
// product.columns: sums of the columns of [rows, columns] in pieces of kPiece rows, by blocks of 8 warps. A lane reads
// 16 bytes of every eighth row, or one number if rows are not a multiple of 16 bytes, and the first warp adds the eight
// sums in order. Then the same kernel adds the pieces' sums, [pieces, columns], as one piece. The width of a lane's
// loads does not change the order.
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/kernels/tiled_product.cuh"

namespace isonorm::gpu {
namespace {

constexpr int kThreads = 256, kSlab = 16;  // 16 x 16 threads

// kPer x kPer numbers for each thread.
template <class T, int kPer> struct Slabs {
  static constexpr int kTile = 16 * kPer;
  alignas(16) T a[2][kSlab][kTile + kPack<T>], b[2][kSlab][kTile + kPack<T>];
};

// The part of an operand's slabs that a thread loads: kPer numbers, held in registers between the tensor and shared
// memory; 0 beyond the operand's end.
template <class T, int kPer> class Part {
  static constexpr int kTile = 16 * kPer, kRows = kThreads / kSlab, kDepths = kThreads / kTile;

 public:
  __device__ __forceinline__ Part(const T* p, const Side& s, int64_t first) : side_(s), by_depth_(s.deep == 1) {
    const int t = static_cast<int>(threadIdx.x);
    along_ = by_depth_ ? t / kSlab : t % kTile;
    depth_ = by_depth_ ? t % kSlab : t / kTile;
    left_ = s.count - first;
    from_ = p + (first + along_) * s.along + depth_ * s.deep;
  }
  // depth: the depth that is left, from the slab on.
  __device__ __forceinline__ void read(int64_t depth) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const bool inside =
          by_depth_ ? along_ + i * kRows < left_ && depth_ < depth : along_ < left_ && depth_ + i * kDepths < depth;
      v_[i] = inside ? from_[by_depth_ ? i * kRows * side_.along : i * kDepths * side_.deep] : T(0);
    }
    from_ += kSlab * side_.deep;
  }
  __device__ __forceinline__ void write(T (&to)[kSlab][kTile + kPack<T>]) const {
#pragma unroll
    for (int i = 0; i < kPer; ++i)
      (by_depth_ ? to[depth_][along_ + i * kRows] : to[depth_ + i * kDepths][along_]) = v_[i];
  }

 private:
  const Side& side_;
  const bool by_depth_;
  int along_, depth_;
  int64_t left_;
  const T* from_;
  T v_[kPer];
};

template <class T, int kPer>
__global__ void __launch_bounds__(kThreads, 2)
    numbers(T* out, const T* a, const T* b, const T* bias, const Tiles tiles, bool packs) {
  constexpr int N = kPack<T>, kGroups = kPer / N, kGroup = 16 * N;  // a thread's rows: N of each group
  auto& slabs = shared<Slabs<T, kPer>>();
  const Tile tile(tiles, Slabs<T, kPer>::kTile);
  Part<T, kPer> left(a + tile.a, tiles.a, tile.row), right(b + tile.b, tiles.b, tile.column);
  const int row = static_cast<int>(threadIdx.x) / 16 * N, column = static_cast<int>(threadIdx.x) % 16 * N;
  T sums[kPer][kPer] = {};
  left.read(tiles.k);
  right.read(tiles.k);
  for (int64_t p = 0, place = 0; p < tiles.k; p += kSlab, place ^= 1) {
    left.write(slabs.a[place]);
    right.write(slabs.b[place]);
    __syncthreads();  // and all have read the other buffer
    left.read(tiles.k - p - kSlab);
    right.read(tiles.k - p - kSlab);
#pragma unroll
    for (int d = 0; d < kSlab; ++d) {
      Pack<T, N> x[kGroups], y[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        x[g] = load<N>(&slabs.a[place][d][g * kGroup + row]);
        y[g] = load<N>(&slabs.b[place][d][g * kGroup + column]);
      }
#pragma unroll
      for (int i = 0; i < kPer; ++i)
#pragma unroll
        for (int j = 0; j < kPer; ++j) sums[i][j] += x[i / N].v[i % N] * y[j / N].v[j % N];
    }
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i)
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      store_result<N>(out + tile.out, tiles, tile.row + i / N * kGroup + row + i % N, tile.column + g * kGroup + column,
                      &sums[i][g * N], bias, packs);
}

template <class T> void run(const Product& p, const Operands& o, const Stream& stream) {
  const Tiles tiles(p);
  T* const out = static_cast<T*>(o.out);
  const auto *a = static_cast<const T*>(o.a), *b = static_cast<const T*>(o.b), *bias = static_cast<const T*>(o.bias);
  const bool packs = aligned(out) && p.n % kPack<T> == 0;
  if constexpr (sizeof(T) == 4)
    if (takes_large_tiles(tiles))
      return launch("product.numbers", &numbers<T, 8>, blocks_of(tiles.count(128), kThreads), stream, out, a, b, bias,
                    tiles, packs);
  launch("product.numbers", &numbers<T, 4>, blocks_of(tiles.count(64), kThreads), stream, out, a, b, bias, tiles,
         packs);
}

// Copies the bias to every row of out, a block for each row.
template <class T> __global__ void __launch_bounds__(kThreads) bias_rows(T* out, const T* bias, int64_t n) {
  out += blockIdx.x * n;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) out[i] = bias[i];
}

constexpr int64_t kPiece = 512;

// to [pieces, columns] (+)= the sums of `length` rows each; a lane has N neighbouring columns.
template <int N, class T, class U>
__global__ void __launch_bounds__(kThreads, 4)
    columns(U* to, const T* x, int64_t rows, int64_t columns, int64_t length, bool add) {
  using A = acc_t<T>;
  constexpr int kWarps = kThreads / 32, M = std::min(N, kPack<U>);
  struct Sums {
    A of[kWarps][N][32];
  };
  auto& sums = shared<Sums>();
  const auto strips = static_cast<unsigned>(ceil_div(columns, 32 * N));
  const int64_t piece = blockIdx.x / strips, column = (int64_t{blockIdx.x % strips} * 32 + lane()) * N;
  const int64_t end = std::min(rows, (piece + 1) * length);
  A sum[N] = {};
  const auto add_rows = [&]<int kRows>(int64_t r) {
    Pack<T, N> row[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) row[i] = load<N>(x + (r + i * kWarps) * columns + column);
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += static_cast<A>(row[i].v[k]);
  };
  int64_t r = piece * length + warp();
  if (column < columns) {
    for (; r + 3 * kWarps < end; r += 4 * kWarps) add_rows.template operator()<4>(r);  // loads of four in flight
    for (; r < end; r += kWarps) add_rows.template operator()<1>(r);
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sums.of[warp()][k][lane()] = sum[k];
  __syncthreads();
  if (warp() > 0 || column >= columns) return;
  for (int w = 1; w < kWarps; ++w)
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += sums.of[w][k][lane()];
  U* const at = to + piece * columns + column;
#pragma unroll
  for (int k = 0; k < N; k += M) {
    Pack<U, M> result{};
    if (add) result = load<M>(at + k);
#pragma unroll
    for (int i = 0; i < M; ++i)
      result.v[i] = static_cast<U>(add ? static_cast<A>(result.v[i]) + sum[k + i] : sum[k + i]);
    store<M>(at + k, result);
  }
}

// Sums the columns in pieces of `length` rows each.
template <class T, class U>
void sum_columns(U* to, const T* x, int64_t rows, int64_t wide, int64_t length, bool add, const Stream& stream) {
  const bool packs = wide % kPack<T> == 0 && aligned(to, x);
  const int64_t strips = ceil_div(wide, packs ? 32 * kPack<T> : 32),
                pieces = std::max<int64_t>(1, ceil_div(rows, length));
  launch("product.columns", packs ? &columns<kPack<T>, T, U> : &columns<1, T, U>, blocks_of(strips * pieces, kThreads),
         stream, to, x, rows, wide, length, add);
}

template <class T, class U> void sum_pieces(const Tensor& sums, const Tensor& x, bool add) {
  using A = acc_t<T>;
  const int64_t rows = x.size(0), wide = x.size(1), pieces = ceil_div(rows, kPiece);
  const Stream& stream = stream_of(x);
  U* const to = write<U>(sums);
  if (pieces <= 1) return sum_columns(to, x.data<T>(), rows, wide, kPiece, add, stream);
  const Scratch partials(x.device(), pieces * wide * static_cast<int64_t>(sizeof(A)));
  A* const partial = partials.as<A>();
  sum_columns(partial, x.data<T>(), rows, wide, kPiece, false, stream);
  sum_columns<A>(to, partial, pieces, wide, pieces, add, stream);
}

}  // namespace

void own_product(const Product& p, const Operands& o, const Stream& stream) {
  switch (p.in) {
    case DType::f64:
      return run<double>(p, o, stream);
    case DType::bf16:
      return bf16_product(p, o, stream);
    default:
      return run<float>(p, o, stream);
  }
}

void fill_with_bias(const Product& p, const Operands& o, const Stream& stream) {
  visit_floating(p.in, "matmul", [&]<class T>() {
    launch("product.bias", &bias_rows<T>, blocks_of(p.batch.count * p.m, kThreads), stream, static_cast<T*>(o.out),
           static_cast<const T*>(o.bias), p.n);
  });
}

void column_sums(const Tensor& sums, const Tensor& x, bool add) {
  visit_floating(x.dtype(), "weight_gradient", [&]<class T>() {
    if (sums.dtype() == x.dtype())
      sum_pieces<T, T>(sums, x, add);
    else
      sum_pieces<T, acc_t<T>>(sums, x, add);
  });
}

}  // namespace isonorm::gpu
