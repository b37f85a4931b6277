// reduce, cumsum, recentre over the middle dimension of a contiguous [outer, length, inner] array.
//
// reduce_each, cumsum_each: a thread for each of outer x inner results, along `length`, if it is short or if
// neighbouring threads read neighbouring elements.
// reduce_rows (inner 1): a team (gpu/rows.cuh) for each piece of kPiece elements; it reads by 16 bytes.
// reduce_columns (inner > 1): a block of 32 columns x 8 threads for each piece of kColumnPiece rows.
// Both read every element once. If there is more than one piece, the results of the pieces are reduced in the same way.
// cumsum_rows: a block for each sequence, with 64 parts of 64 elements at a time in shared memory. Its additions are
// the additions of core/cpu/reduce.cpp in the same order, so results are equal and a running sum of nonnegative numbers
// never falls.
// recentre_rows, recentre_columns: like reduce; a row stays in registers if it fits. `out` may be x: an element is read
// and written by one thread.
// sum_blocks_each: a thread for 16 bytes of neighbours, or for one element. It reads them in every
// block, in the slot's order, before it writes. No sum is shared between threads.
#include <limits>
#include <type_traits>

#include "core/kernels/reduce.h"
#include "gpu/columns.cuh"
#include "gpu/memory.h"
#include "gpu/rows.cuh"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

using kernels::ReduceOp, kernels::ReduceShape;

constexpr int64_t kShort = 64, kPiece = 16384, kColumnPiece = 256;

// NaN wins in max and min.
template <ReduceOp K> struct Combine {
  template <class A> __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (K == ReduceOp::sum) return a + b;
    if constexpr (K == ReduceOp::product) return a * b;
    if constexpr (K == ReduceOp::max) return b > a || b != b ? b : a;
    return b < a || b != b ? b : a;
  }
};
template <class A>
inline constexpr A kGreatest = std::is_integral_v<A> ? std::numeric_limits<A>::max()
                                                     : std::numeric_limits<A>::infinity();
template <class A> inline constexpr A kLeast = std::is_integral_v<A> ? std::numeric_limits<A>::min() : -kGreatest<A>;
template <ReduceOp K, class A>
inline constexpr A kNothing = K == ReduceOp::sum       ? A(0)
                              : K == ReduceOp::product ? A(1)
                              : K == ReduceOp::max     ? kLeast<A>
                                                       : kGreatest<A>;

template <ReduceOp K, class From, class To>
__global__ void __launch_bounds__(256) reduce_each(To* out, const From* x, ReduceShape s) {
  using A = acc_t<To>;
  const int64_t e = element();
  if (e >= s.outer * s.inner) return;
  const From* p = x + first_of(e, s.length, s.inner);
  A v = kNothing<K, A>;
  for (int64_t k = 0; k < s.length; ++k) v = Combine<K>()(v, A(p[k * s.inner]));
  out[e] = To(v);
}

// Team number t has piece t % pieces of row t / pieces. rows.width is the width of every piece but the last of a row.
template <ReduceOp K, class From, class To>
__global__ void __launch_bounds__(256) reduce_rows(To* out, const From* x, Rows rows, int64_t length, int64_t pieces) {
  using A = acc_t<To>;
  const Team team(rows);
  if (team.number >= rows.count) return;  // the whole team leaves
  const int64_t begin = team.number % pieces * rows.width;
  const From* p = x + team.number / pieces * length + begin;
  if (length - begin < rows.width) rows.width = length - begin;
  A v[1] = {kNothing<K, A>};
  for_packs<From, false>(team, rows, [&](int64_t i, int n, int) {
    const auto pack = load_part(p + i, n, rows.packed);
    for (int k = 0; k < kPack<From>; ++k)
      if (k < n) v[0] = Combine<K>()(v[0], A(pack.v[k]));
  });
  team_reduce<Combine<K>>(team, v, shared<TeamRoom<A, 1>>());
  if (team.thread == 0) out[team.number] = To(v[0]);
}

// Block b has 32 columns of piece b / strips % pieces of array b / strips / pieces.
template <ReduceOp K, class From, class To>
__global__ void __launch_bounds__(256)
    reduce_columns(To* out, const From* x, ReduceShape s, int64_t strips, int64_t pieces) {
  using A = acc_t<To>;
  const int64_t column = blockIdx.x % strips * 32 + lane(), piece = blockIdx.x / strips;
  const int64_t begin = piece % pieces * kColumnPiece,
                end = begin + kColumnPiece < s.length ? begin + kColumnPiece : s.length;
  const From* p = x + piece / pieces * s.length * s.inner + column;
  A v = kNothing<K, A>;
  if (column < s.inner)
    for (int64_t r = begin + warp(); r < end; r += 8) v = Combine<K>()(v, A(p[r * s.inner]));
  v = reduce_column<Combine<K>>(v);
  if (warp() == 0 && column < s.inner) out[piece * s.inner + column] = To(v);
}

template <ReduceOp K, class From, class To>
void reduce_stage(const ReduceShape& s, To* out, const From* x, const Stream& stream, Device device) {
  using A = acc_t<To>;
  const bool rows = s.inner == 1;
  const int64_t piece = rows ? kPiece : kColumnPiece, pieces = ceil_div(s.length, piece);
  if (s.length <= kShort)
    return launch("reduce.each", &reduce_each<K, From, To>, one_each(s.outer * s.inner), stream, out, x, s);
  const auto reduce_pieces = [&]<class Out>(Out* to) {
    if (rows) {
      Rows r = rows_of<From>(s.outer * pieces, std::min(s.length, piece), x);
      r.packed = aligned(x) && s.length % kPack<From> == 0;
      launch("reduce.rows", &reduce_rows<K, From, Out>, r.shape(), stream, to, x, r, s.length, pieces);
    } else {
      const int64_t strips = ceil_div(s.inner, 32);
      launch("reduce.columns", &reduce_columns<K, From, Out>, blocks_of(s.outer * pieces * strips, 256), stream, to, x,
             s, strips, pieces);
    }
  };
  if (pieces == 1) return reduce_pieces(out);
  const Scratch partial(device, s.outer * pieces * s.inner * static_cast<int64_t>(sizeof(A)));
  reduce_pieces(partial.as<A>());
  reduce_stage<K, A, To>({s.outer, pieces, s.inner}, out, partial.as<const A>(), stream, device);
}

// Sums of parts of 64, and of parts of parts: core/cpu/reduce.cpp says why.
constexpr int kPart = 64;

template <class T> __global__ void __launch_bounds__(256) cumsum_each(T* out, const T* x, ReduceShape s, bool reverse) {
  using A = acc_t<T>;
  const int64_t e = element(), step = reverse ? -s.inner : s.inner;
  if (e >= s.outer * s.inner) return;
  int64_t at = first_of(e, s.length, s.inner) + (reverse ? (s.length - 1) * s.inner : 0);
  A total = 0, whole = 0, part = 0;
  for (int64_t k = 0; k < s.length; ++k, at += step) {
    if (k % kPart == 0) whole += part, part = 0;
    if (k % (kPart * kPart) == 0) total += whole, whole = 0;
    part += A(x[at]);
    out[at] = T(total + (whole + part));
  }
}

template <class T> __global__ void __launch_bounds__(256) cumsum_rows(T* out, const T* x, ReduceShape s, bool reverse) {
  using A = acc_t<T>;
  struct Room {
    A part[kPart][kPart + 1];  // running sums, then the total; the odd width puts parts into different banks
    A whole[kPart + 1];        // sum of the parts before
  };
  Room& room = shared<Room>();
  const int64_t step = reverse ? -s.inner : s.inner;
  const int64_t first = first_of(blockIdx.x, s.length, s.inner) + (reverse ? (s.length - 1) * s.inner : 0);
  const int t = static_cast<int>(threadIdx.x);
  A total = 0;
  for (int64_t begin = 0; begin < s.length; begin += kPart * kPart) {
    const int n = static_cast<int>(s.length - begin < kPart * kPart ? s.length - begin : kPart * kPart);
    for (int k = t; k < n; k += 256) room.part[k / kPart][k % kPart] = A(x[first + (begin + k) * step]);
    __syncthreads();
    const int parts = (n + kPart - 1) / kPart;
    if (t < parts) {
      A part = 0;
      const int size = n - t * kPart < kPart ? n - t * kPart : kPart;
      for (int k = 0; k < size; ++k) room.part[t][k] = part += room.part[t][k];
      room.part[t][kPart] = part;
    }
    __syncthreads();
    if (t == 0) {
      A whole = 0;
      for (int p = 0; p < parts; ++p) {
        room.whole[p] = whole;
        whole += room.part[p][kPart];
      }
      room.whole[parts] = whole;
    }
    __syncthreads();
    for (int k = t; k < n; k += 256)
      out[first + (begin + k) * step] = T(total + (room.whole[k / kPart] + room.part[k / kPart][k % kPart]));
    total += room.whole[parts];
    // A thread loads the next elements only to places that it alone has read; the others wait for them at the barrier
    // above.
  }
}

// If sums are no more precise than the elements, a second pass subtracts the rest of the mean.
template <class T> inline constexpr int kRecentrePasses = std::is_same_v<acc_t<T>, T> ? 2 : 1;

template <bool held, class T> __global__ void __launch_bounds__(256) recentre_rows(T* out, const T* x, Rows rows) {
  using A = acc_t<T>;
  const Team team(rows);
  if (team.number >= rows.count) return;  // the whole team leaves
  const bool packed = held || rows.packed;
  const int64_t row = team.number * rows.width;
  const T* from = x + row;
  const auto read = [&](int64_t i, int n) { return load_part(from + i, n, packed); };
  RowPacks<T, held> mine;
  mine.bring(team, rows, read);
  for (int pass = 1; pass <= kRecentrePasses<T>; ++pass) {
    A sum[1] = {0};
    for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
      const auto p = mine.at(i, n, slot, read);
      for (int k = 0; k < kPack<T>; ++k) sum[0] += A(p.v[k]);
    });
    team_reduce<Plus>(team, sum, shared<TeamRoom<A, 1>>());
    const A mean = sum[0] / static_cast<A>(rows.width);
    for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
      auto p = mine.at(i, n, slot, read);
      for (int k = 0; k < kPack<T>; ++k) p.v[k] = T(A(p.v[k]) - mean);
      if constexpr (held) mine.kept[slot] = p;
      if (!held || pass == kRecentrePasses<T>) store_part(out + row + i, p, n, packed);
    });
    from = out + row;
  }
}

template <class T>
__global__ void __launch_bounds__(256, 2) recentre_columns(T* out, const T* x, ReduceShape s, int64_t strips) {
  using A = acc_t<T>;
  const int64_t column = blockIdx.x % strips * 32 + lane();
  const int64_t begin = blockIdx.x / strips * s.length * s.inner + column;
  const bool inside = column < s.inner;
  const T* from = x + begin;
  for (int pass = 0; pass < kRecentrePasses<T>; ++pass) {
    A sum = 0;
    if (inside)
      for (int64_t r = warp(); r < s.length; r += 8) sum += A(from[r * s.inner]);
    const A mean = reduce_column<Plus>(sum) / static_cast<A>(s.length);
    if (inside)
      for (int64_t r = warp(); r < s.length; r += 8) out[begin + r * s.inner] = T(A(from[r * s.inner]) - mean);
    from = out + begin;
  }
}

// blocks [parts, ranks, block]; N divides block.
template <int N, class T>
__global__ void __launch_bounds__(256)
    sum_blocks_each(T* out, const T* blocks, int64_t parts, int64_t ranks, int64_t block) {
  const int64_t at = element() * N;
  if (at >= block) return;
  acc_t<T> sum[N];
  const auto first = load<N>(blocks + at);
#pragma unroll
  for (int k = 0; k < N; ++k) sum[k] = static_cast<acc_t<T>>(first.v[k]);
  for (int64_t r = 0; r < ranks; ++r)
    for (int64_t p = r == 0 ? 1 : 0; p < parts; ++p) {
      const auto x = load<N>(blocks + (p * ranks + r) * block + at);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += static_cast<acc_t<T>>(x.v[k]);
    }
  Pack<T, N> rounded;
#pragma unroll
  for (int k = 0; k < N; ++k) rounded.v[k] = static_cast<T>(sum[k]);
  store(out + at, rounded);
}

}  // namespace

void reduce(ReduceOp kind, ReduceShape s, const Tensor& out, const Tensor& x) {
  if (out.numel() == 0) return;
  const auto run = [&]<ReduceOp K, class T>() {
    reduce_stage<K>(s, write<T>(out), x.data<T>(), stream_of(x), x.device());
  };
  visit_numbers(x.dtype(), "reduce", [&]<class T>() {
    if (kind == ReduceOp::sum) return run.template operator()<ReduceOp::sum, T>();
    if (kind == ReduceOp::max) return run.template operator()<ReduceOp::max, T>();
    if (kind == ReduceOp::product) return run.template operator()<ReduceOp::product, T>();
    run.template operator()<ReduceOp::min, T>();
  });
}

void cumsum(ReduceShape s, const Tensor& out, const Tensor& x, bool reverse) {
  if (out.numel() == 0) return;
  visit_numbers(x.dtype(), "cumsum", [&]<class T>() {
    if (s.inner < 32 && s.length > kShort)
      launch("cumsum.rows", &cumsum_rows<T>, blocks_of(s.outer * s.inner, 256), stream_of(x), write<T>(out),
             x.data<T>(), s, reverse);
    else
      launch("cumsum.each", &cumsum_each<T>, one_each(s.outer * s.inner), stream_of(x), write<T>(out), x.data<T>(), s,
             reverse);
  });
}

void recentre(ReduceShape s, const Tensor& out, const Tensor& x) {
  if (out.numel() == 0) return;
  visit_floating(x.dtype(), "recentre", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = write<T>(out);
    if (s.inner > 1) {
      const int64_t strips = ceil_div(s.inner, 32);
      return launch("recentre.columns", &recentre_columns<T>, blocks_of(s.outer * strips, 256), stream_of(x), to, from,
                    s, strips);
    }
    const Rows rows = rows_of<T>(s.outer, s.length, from, to);
    visit_bool(rows.held, [&]<bool held>() {
      launch("recentre.rows", &recentre_rows<held, T>, rows.shape(), stream_of(x), to, from, rows);
    });
  });
}

void sum_blocks(const Tensor& out, const Tensor& blocks, int64_t parts, int64_t ranks) {
  const int64_t block = out.numel();
  if (block == 0) return;
  visit_all(blocks.dtype(), [&]<class T>() {
    T* const to = write<T>(out);
    const T* const from = blocks.data<T>();
    visit_bool(block % kPack<T> == 0 && aligned(to, from), [&]<bool packs>() {
      constexpr int N = packs ? kPack<T> : 1;
      launch("sum_blocks", &sum_blocks_each<N, T>, one_each(block / N), stream_of(out), to, from, parts, ranks, block);
    });
  });
}

}  // namespace isonorm::gpu
