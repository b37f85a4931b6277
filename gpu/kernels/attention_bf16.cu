// Attention in bf16 by tensor cores for heads of 64 elements, without a mask; causal from the first key or not, any
// number of queries and keys, heads read and written in place by 16 bytes. Computed in tiles (Dao et al., 2205.14135;
// work split over warps as in 2307.08691). Sums, weights and logarithms are f32; weights are rounded to bf16 for the
// products they enter.
//
// A block of 128 threads has 128 rows of a head (backward: 64), and each of its four warps has a strip. It
// walks over the rows of the other side in tiles of 64, which are copied to shared memory while the previous tile is
// computed. Scores never leave the registers. 32 KiB of shared memory and less than 256 registers: two blocks per
// multiprocessor.
//   attention_forward.bf16: rows are queries, with a running maximum and sum of each; writes out and lse. Causal: the
//     blocks with the most keys come first.
//   attention_backward.rows_bf16: lse log2(e) and the sum of dout out for each query, padded to multiples of 64, so
//     that they can be copied by 16 bytes. Eight lanes share a query.
//   attention_backward.keys_bf16: rows are keys; writes dk and dv.
//   attention_backward.queries_bf16: rows are queries; writes dq.
// The last two need seven products instead of five. In return each number is one warp's sum in the order of tiles, with
// the same bits in every run and no memory for partial sums.
#include <limits>

#include "core/formulas/hd.h"
#include "core/formulas/math/log.h"
#include "core/kernels/attention.h"
#include "gpu/launch.h"
#include "gpu/libraries/attention.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/tiles.cuh"

namespace isonorm::gpu {
namespace {

using namespace tiles;

constexpr float kLog2e = 1.44269504f, kInfinity = std::numeric_limits<float>::infinity();
using In = Heads<const bf16>;

struct Sizes {
  int heads, queries, keys;
  float scale;
  ISO_HD int padded() const { return (queries + kSize - 1) / kSize * kSize; }
};

struct ForwardRoom {
  Tile k[2], v[2];
};

// Turns a tile of scores into e^(score - top), where top [..][rows g, g + 8] is the running maximum; rescales sum and
// out.
template <int kM>
__device__ __forceinline__ void softmax_strip(Strip<kM>& p, Strip<kM>& out, float (&top)[kM][2], float (&sum)[kM][2],
                                              float scale) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = top[m][r];  // finite from the first tile on: every query sees the first key
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) largest = fmaxf(largest, fmaxf(p[m][n][2 * r], p[m][n][2 * r + 1]));
      for (int by = 1; by <= 2; by *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, by));
      const float keep = fast_exp2((top[m][r] - largest) * scale), shift = largest * scale;
      top[m][r] = largest;
      sum[m][r] *= keep;
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n)
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          p[m][n][i] = fast_exp2(p[m][n][i] * scale - shift);
          sum[m][r] += p[m][n][i];
          out[m][n][i] *= keep;
        }
    }
}

template <bool kCausal>
__global__ void __launch_bounds__(kThreads) forward_tiles(Sizes s, Heads<bf16> outs, float* lse, In qs, In ks, In vs) {
  constexpr int kM = 2, kRows = 2 * kSize;
  ForwardRoom& room = shared<ForwardRoom>();
  const int blocks = (s.queries + kRows - 1) / kRows, pair = static_cast<int>(blockIdx.x) / blocks;
  const int first = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * kRows;
  const auto q = qs.rows(pair, s.heads, s.queries);
  const auto k = ks.rows(pair, s.heads, s.keys), v = vs.rows(pair, s.heads, s.keys);

  // The queries pass through the tiles that will hold the second keys and values.
  copy_tile(room.k[1], q, first);
  copy_tile(room.v[1], q, first + kSize);
  commit_copies();
  copy_tile(room.k[0], k, 0);
  copy_tile(room.v[0], v, 0);
  commit_copies();
  wait_copies<1>();
  __syncthreads();                                        // all queries have arrived
  const int mine = warp() * 16 * kM, row = first + mine;  // the warp's first row
  Left<kM> a;
  load_left<kM>(a, mine < kSize ? room.k[1] : room.v[1], mine % kSize);

  Strip<kM> out = {};
  float top[kM][2] = {{-kInfinity, -kInfinity}, {-kInfinity, -kInfinity}}, sum[kM][2] = {};
  const int end = kCausal && first + kRows < s.keys ? first + kRows : s.keys;
  for (int j = 0; j * kSize < end; ++j) {
    wait_copies<0>();
    __syncthreads();  // tile j has arrived, and nobody reads tile j - 1 any more
    const int column = j * kSize;
    if (column + kSize < end) {
      copy_tile(room.k[(j + 1) % 2], k, column + kSize);
      copy_tile(room.v[(j + 1) % 2], v, column + kSize);
      commit_copies();
    }
    if (kCausal && column >= row + 16 * kM) continue;  // this warp sees none of its keys
    Strip<kM> p = {};
    add_scores<kM>(p, a, room.k[j % 2]);
    if (column + kSize > s.keys || (kCausal && column + kSize > row))
      for_strip<kM>([&](int m, int n, int i) {
        const int key = column + column_of(n, i);
        if (key >= s.keys || (kCausal && key > row + row_of(m, i))) p[m][n][i] = -kInfinity;
      });
    softmax_strip<kM>(p, out, top, sum, s.scale * kLog2e);
    add_product<kM>(out, p, room.v[j % 2]);
  }

#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = sum[m][r];
      for (int by = 1; by <= 2; by *= 2) total += __shfl_xor_sync(~0u, total, by);
      const float inverse = 1 / total;
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) out[m][n][2 * r] *= inverse, out[m][n][2 * r + 1] *= inverse;
      const int query = row + row_of(m, 2 * r);
      if (lane() % 4 == 0 && query < s.queries)
        lse[int64_t{pair} * s.queries + query] = top[m][r] * s.scale + math::log(total);
    }
  __syncthreads();  // the last tile has been read
  write_strip<kM>(outs.rows(pair, s.heads, s.queries), row, out, mine < kSize ? room.k[0] : room.v[0], mine % kSize);
}

// to [pairs, padded] = lse log2(e), infinity in the padding, so that its weights are 0; dots = the sums of dout out.
__global__ void __launch_bounds__(kThreads)
    backward_rows(Sizes s, float* to, float* dots, const float* lse, In outs, In douts) {
  const int tiles = s.padded() / kSize, pair = static_cast<int>(blockIdx.x) / tiles, c = lane() % 8 * 8;
  const auto out = outs.rows(pair, s.heads, s.queries), dout = douts.rows(pair, s.heads, s.queries);
  for (int k = static_cast<int>(threadIdx.x) / 8; k < kSize; k += kThreads / 8) {
    const int row = static_cast<int>(blockIdx.x) % tiles * kSize + k;
    const bool inside = row < s.queries;
    float sum = 0;
    if (inside) {
      const auto x = load<8>(dout.row(row) + c), y = load<8>(out.row(row) + c);
      for (int i = 0; i < 8; ++i) sum += static_cast<float>(x.v[i]) * static_cast<float>(y.v[i]);
    }
    for (int by = 1; by <= 4; by *= 2) sum += __shfl_xor_sync(~0u, sum, by);
    if (lane() % 8 != 0) continue;
    const int64_t at = int64_t{pair} * s.padded() + row;
    to[at] = inside ? lse[int64_t{pair} * s.queries + row] * kLog2e : kInfinity;
    dots[at] = sum;
  }
}

struct BackwardRoom {
  Tile x[2], y[2];
  alignas(16) float log[2][kSize], dots[2][kSize];
};

// kKeys: rows a, b are keys and values, columns x, y are queries and dout; da = dk, db = dv. Else rows are queries and
// dout, columns are keys and values; da = dq. With weights p and ds = p (b y^T - dots): da = scale ds x, db = p y.
template <bool kKeys, bool kCausal>
__global__ void __launch_bounds__(kThreads) backward_tiles(Sizes s, const float* log, const float* dots, In as, In bs,
                                                           In xs, In ys, Heads<bf16> das, Heads<bf16> dbs) {
  BackwardRoom& room = shared<BackwardRoom>();
  const int rows = kKeys ? s.keys : s.queries, columns = kKeys ? s.queries : s.keys;
  const int blocks = (rows + kSize - 1) / kSize, pair = static_cast<int>(blockIdx.x) / blocks;
  const int order = static_cast<int>(blockIdx.x) % blocks, first = (kKeys ? order : blocks - 1 - order) * kSize;
  const auto a = as.rows(pair, s.heads, rows), b = bs.rows(pair, s.heads, rows);
  const auto x = xs.rows(pair, s.heads, columns), y = ys.rows(pair, s.heads, columns);
  log += int64_t{pair} * s.padded();
  dots += int64_t{pair} * s.padded();
  const int begin = kCausal && kKeys ? first / kSize : 0;
  const int last = kCausal && !kKeys && first + kSize < columns ? first + kSize : columns;
  const int end = (last + kSize - 1) / kSize;

  const auto copy_columns = [&](int j) {
    copy_tile(room.x[j % 2], x, j * kSize);
    copy_tile(room.y[j % 2], y, j * kSize);
    float* to = threadIdx.x < 16 ? room.log[j % 2] : room.dots[j % 2];
    const float* from = (threadIdx.x < 16 ? log : dots) + j * kSize;
    const int chunk = static_cast<int>(threadIdx.x) % 16 * 4;
    if (kKeys && threadIdx.x < 32) copy_async(to + chunk, from + chunk);
    commit_copies();
  };
  // The rows pass through the tiles that will hold the second columns.
  copy_tile(room.x[(begin + 1) % 2], a, first);
  copy_tile(room.y[(begin + 1) % 2], b, first);
  commit_copies();
  if (begin < end)
    copy_columns(begin);
  else
    commit_copies();
  wait_copies<1>();
  __syncthreads();  // all rows have arrived
  const int mine = warp() * 16;
  Left<1> la, lb;
  load_left<1>(la, room.x[(begin + 1) % 2], mine);
  load_left<1>(lb, room.y[(begin + 1) % 2], mine);
  float row_log[2] = {}, row_dots[2] = {};
  for (int r = 0; r < 2 && !kKeys; ++r) {
    row_log[r] = log[first + mine + row_of(0, 2 * r)];
    row_dots[r] = dots[first + mine + row_of(0, 2 * r)];
  }

  Strip<1> da = {}, db = {};
  const float scale = s.scale * kLog2e;
  for (int j = begin; j < end; ++j) {
    wait_copies<0>();
    __syncthreads();  // tile j has arrived, and nobody reads tile j - 1 any more
    if (j + 1 < end) copy_columns(j + 1);
    Strip<1> p = {}, ds = {};
    add_scores<1>(p, la, room.x[j % 2]);
    add_scores<1>(ds, lb, room.y[j % 2]);
    const bool edge = (kCausal && j * kSize == first) || (!kKeys && (j + 1) * kSize > columns);
    for_strip<1>([&](int, int n, int i) {
      const int c = column_of(n, i), row = first + mine + row_of(0, i), column = j * kSize + c;
      const float of_query = kKeys ? room.log[j % 2][c] : row_log[i / 2];
      const float dot = kKeys ? room.dots[j % 2][c] : row_dots[i / 2];
      const bool unseen = kCausal && (kKeys ? row > column : column > row);
      const bool hidden = edge && (unseen || (!kKeys && column >= columns));
      p[0][n][i] = hidden ? 0 : fast_exp2(p[0][n][i] * scale - of_query);
      ds[0][n][i] = p[0][n][i] * (ds[0][n][i] - dot);
    });
    if constexpr (kKeys) add_product<1>(db, p, room.y[j % 2]);
    add_product<1>(da, ds, room.x[j % 2]);
  }
  for_strip<1>([&](int m, int n, int i) { da[m][n][i] *= s.scale; });
  wait_copies<0>();
  __syncthreads();  // the last tile has been read
  write_strip<1>(das.rows(pair, s.heads, rows), first + mine, da, room.x[0], mine);
  if constexpr (kKeys) write_strip<1>(dbs.rows(pair, s.heads, rows), first + mine, db, room.y[0], mine);
}

// True if all tensors [batch, heads, rows, 64] begin at multiples of 16 bytes and their rows, too.
template <class... X> bool by_packs(const X&... tensors) {
  const auto fits = [](const Tensor& t) {
    const auto& s = t.strides();
    return t.size(3) == kSize && t.size(2) < 1 << 30 && aligned(t.data<bf16>()) && (s[0] | s[1] | s[2]) % 8 == 0;
  };
  return (fits(tensors) && ...);
}
bool can_attend(const kernels::AttentionSpec& spec, const kernels::AttentionInputs& in) {
  return in.q.dtype() == DType::bf16 && !in.mask.defined() && spec.ahead == 0 && in.k.size(2) > 0 && in.q.numel() > 0 &&
         spec.scale > 0;
}
Sizes sizes_of(const kernels::AttentionSpec& spec, const kernels::AttentionInputs& in) {
  return {static_cast<int>(in.q.size(1)), static_cast<int>(in.q.size(2)), static_cast<int>(in.k.size(2)),
          static_cast<float>(spec.scale)};
}
Shape blocks(const Tensor& rows, int64_t of_block) {
  return blocks_of(rows.size(0) * rows.size(1) * ceil_div(rows.size(2), of_block), kThreads);
}

}  // namespace

bool attention_forward_bf16(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                            const kernels::AttentionInputs& in) {
  if (attention_forward_library(spec, out, lse, in)) return true;
  if (!can_attend(spec, in) || !by_packs(out, in.q, in.k, in.v)) return false;
  launch("attention_forward.bf16", spec.causal ? &forward_tiles<true> : &forward_tiles<false>, blocks(in.q, 2 * kSize),
         stream_of(out), sizes_of(spec, in), write_heads<bf16>(out), write<float>(lse), read_heads<bf16>(in.q),
         read_heads<bf16>(in.k), read_heads<bf16>(in.v));
  return true;
}

bool attention_backward_bf16(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                             const kernels::AttentionSaved& saved) {
  if (attention_backward_library(spec, out, saved)) return true;
  const auto& [q, k, v, mask] = saved.in;
  if (!can_attend(spec, saved.in) || !by_packs(out.dq, out.dk, out.dv, saved.out, saved.dout, q, k, v)) return false;
  const Stream& stream = stream_of(q);
  const Sizes s = sizes_of(spec, saved.in);
  const int64_t rows = q.size(0) * q.size(1) * s.padded();
  const Scratch scratch(q.device(), 2 * rows * int64_t{sizeof(float)});
  float *log = scratch.as<float>(), *dots = log + rows;
  const In qs = read_heads<bf16>(q), ks = read_heads<bf16>(k), vs = read_heads<bf16>(v);
  const In douts = read_heads<bf16>(saved.dout);
  launch("attention_backward.rows_bf16", &backward_rows, blocks(q, kSize), stream, s, log, dots,
         saved.sums.lse.data<float>(), read_heads<bf16>(saved.out), douts);
  launch("attention_backward.keys_bf16", spec.causal ? &backward_tiles<true, true> : &backward_tiles<true, false>,
         blocks(k, kSize), stream, s, log, dots, ks, vs, qs, douts, write_heads<bf16>(out.dk),
         write_heads<bf16>(out.dv));
  launch("attention_backward.queries_bf16", spec.causal ? &backward_tiles<false, true> : &backward_tiles<false, false>,
         blocks(q, kSize), stream, s, log, dots, qs, douts, ks, vs, write_heads<bf16>(out.dq), Heads<bf16>{});
  return true;
}

}  // namespace isonorm::gpu
