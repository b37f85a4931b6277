// Attention of any kind: f32, f64, bf16, masks, causal from any key or not, any number of queries and keys, any size of
// heads, heads read and written in place. Computed in tiles (Dao et al., 2205.14135): a matrix of scores is never
// stored. bf16 without a mask is computed by cuDNN if it is present, or by kernels of its own (attention_bf16.cu), for
// which these are the oracle.
//
// All products are of tiles of 64 x 64 numbers (f64: 32 x 32) by a block of 256 threads (64) with 4 x 4 each.
// A block has a tile of a head's rows and 64 (32) columns of a result. It walks over the tiles of the other side in
// order. On each tile it computes the scores, the weights (in shared memory) and their product, which it adds to the
// result.
//   attention_forward.rows: rows are queries, the result is out, with a running maximum and sum of each query; also
//     writes top and lse.
//   attention_backward.dots: a warp for each query: the sum of dout out.
//   attention_backward.q, .k, .v: rows are queries (dq) or keys (dk, dv); weights from top, lse. There is a pass for
//     each of the three, so that every number is one thread's sum over tiles in order: the same bits in every run.
// Each pass reads the other side once for each tile of rows and each 64 columns of its result, which it writes once.
#include <limits>

#include "core/formulas/math/exp.h"
#include "core/formulas/math/log.h"
#include "gpu/block.cuh"
#include "gpu/heads.cuh"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

template <class A> inline constexpr int kTile = sizeof(A) == 8 ? 32 : 64;
template <class A> inline constexpr int kLanes = kTile<A> / 4;  // threads that share a row of a tile
template <class A> inline constexpr int kThreads = kLanes<A>* kLanes<A>;
constexpr int kDepth = 16;  // depth of a product's piece in shared memory

template <class A> using Piece = A[kDepth][kTile<A> + 4];  // 4: so that columns begin in different banks
template <class A> struct Room {
  alignas(16) Piece<A> x, y;
  alignas(16) A weights[kTile<A>][kTile<A> + 4];  // transposed: [column][row]
};
template <class A> using Part = A[4][4];  // a thread's numbers of a tile: rows 4 y.., columns 4 x..

template <class A> __device__ __forceinline__ int my_row() { return static_cast<int>(threadIdx.x) / kLanes<A> * 4; }
template <class A> __device__ __forceinline__ int my_column() { return static_cast<int>(threadIdx.x) % kLanes<A> * 4; }

template <class T> struct Problem {
  using A = acc_t<T>;
  int heads, queries, keys, size, values;
  bool causal;
  int ahead;
  int64_t mask_stride[4];
  A scale;
  const T* mask;  // or null

  __device__ __forceinline__ bool hidden(int q, int k) const {
    return q >= queries || k >= keys || (causal && k > q + ahead);
  }
  // The number of keys that the queries [.., end) see.
  __device__ __forceinline__ int visible(int end) const {
    const int seen = end + ahead < keys ? end + ahead : keys;
    return !causal ? keys : seen > 0 ? seen : 0;
  }
  __device__ __forceinline__ A score(A dot, int pair, int q, int k) const {
    const int64_t* by = mask_stride;
    const A s = scale * dot;
    return mask ? s + A(mask[pair / heads * by[0] + pair % heads * by[1] + q * by[2] + k * by[3]]) : s;
  }
};

// The sums of each query, as in kernels::AttentionSums. If top is null, lse includes it.
template <class A> struct Sums {
  A *top, *lse;
  __device__ __forceinline__ void write(int64_t query, A shift, A log) const {
    if (top) top[query] = shift;
    lse[query] = top ? log : shift + log;
  }
};
template <class A> struct KnownSums {
  const A *top, *lse;
  // The logarithm of a score's weight.
  __device__ __forceinline__ A below(int64_t query, A score) const {
    return (top ? score - top[query] : score) - lse[query];
  }
};

// kElements: stages a tile's rows from `first` on and kDepth elements from `at` on as to[element][row]. Else stages
// kDepth rows and a tile's elements as to[row][element]. Zeros beyond the end; a row has `size` elements.
template <bool kElements, class T, class A>
__device__ __forceinline__ void stage(Piece<A>& to, const Rows<const T>& from, int first, int at, int size) {
  constexpr int kAcross = kElements ? kDepth : kTile<A>;
  for (int n = static_cast<int>(threadIdx.x); n < kTile<A> * kDepth; n += kThreads<A>) {
    const int row = n / kAcross, e = n % kAcross;
    const A v = first + row < from.count && at + e < size ? A(from.row(first + row)[at + e]) : A(0);
    (kElements ? to[e][row] : to[row][e]) = v;
  }
}
// Calls f(i, j) for each of a thread's numbers.
template <class F> __device__ __forceinline__ void for_part(const F& f) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) f(i, j);
}

// sums[i][j] += a[d][row i] b[d][column j] over d, in order.
template <class A>
__device__ __forceinline__ void add_piece(Part<A>& sums, const A (*a)[kTile<A> + 4], const Piece<A>& b) {
#pragma unroll(sizeof(A) == 8 ? 2 : 4)
  for (int d = 0; d < kDepth; ++d) {
    A left[4], right[4];
    load_all(left, &a[d][my_row<A>()]);
    load_all(right, &b[d][my_column<A>()]);
    for_part([&](int i, int j) { sums[i][j] += left[i] * right[j]; });
  }
}

// sums += rows of a times rows of b.
template <class T, class A>
__device__ __forceinline__ void add_dots(Part<A>& sums, Room<A>& room, const Rows<const T>& a, int first_a,
                                         const Rows<const T>& b, int first_b, int size) {
  for (int at = 0; at < size; at += kDepth) {
    __syncthreads();  // nobody reads the previous pieces any more
    stage<true>(room.x, a, first_a, at, size);
    stage<true>(room.y, b, first_b, at, size);
    __syncthreads();
    add_piece<A>(sums, room.x, room.y);
  }
}

// sums += weights times rows of b, for elements from `at` on.
template <class T, class A>
__device__ __forceinline__ void add_weighted(Part<A>& sums, Room<A>& room, const Part<A>& weights,
                                             const Rows<const T>& b, int first, int at, int size) {
  __syncwarp();  // only its own warp reads a row's weights, and it has read the previous ones
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const A column[4] = {weights[0][j], weights[1][j], weights[2][j], weights[3][j]};
    store_all(&room.weights[my_column<A>() + j][my_row<A>()], column);
  }
  const int depth = b.count - first < kTile<A> ? b.count - first : kTile<A>;
  for (int d = 0; d < depth; d += kDepth) {
    __syncthreads();  // the weights are there; nobody reads the previous piece any more
    stage<false>(room.y, b, first + d, at, size);
    __syncthreads();
    add_piece<A>(sums, &room.weights[d], room.y);
  }
}

template <class T, class A>
__device__ __forceinline__ void write_part(const Rows<T>& to, const Part<A>& part, int first, int at, int size) {
  for_part([&](int i, int j) {
    const int row = first + my_row<A>() + i, column = at + my_column<A>() + j;
    if (row < to.count && column < size) to.row(row)[column] = T(part[i][j]);
  });
}

// The work of a block: a head, its first row and its first column of the result.
struct Task {
  int pair, first, at;
};
template <class A> __device__ __forceinline__ Task task(int rows, int width) {
  const int across = width > 0 ? (width + kTile<A> - 1) / kTile<A> : 1, down = (rows + kTile<A> - 1) / kTile<A>;
  const int block = static_cast<int>(blockIdx.x), tile = block / across;
  return {tile / down, tile % down * kTile<A>, block % across * kTile<A>};
}

// Reduces v by f over all threads that share a row.
template <class A, class F> __device__ __forceinline__ A reduce_row(A v, F f) {
#pragma unroll
  for (int by = 1; by < kLanes<A>; by *= 2) v = f(v, __shfl_xor_sync(~0u, v, by));
  return v;
}

template <class T>
__global__ void __launch_bounds__(kThreads<acc_t<T>>)
    forward_rows(Problem<T> p, Heads<T> out, Sums<acc_t<T>> to, Heads<const T> qs, Heads<const T> ks,
                 Heads<const T> vs) {
  using A = acc_t<T>;
  constexpr A lowest = -std::numeric_limits<A>::infinity();
  Room<A>& room = shared<Room<A>>();
  const Task t = task<A>(p.queries, p.values);
  const auto q = qs.rows(t.pair, p.heads, p.queries);
  const auto k = ks.rows(t.pair, p.heads, p.keys), v = vs.rows(t.pair, p.heads, p.keys);
  const int end = p.visible(t.first + kTile<A>);
  Part<A> sums = {};
  A top[4] = {lowest, lowest, lowest, lowest}, total[4] = {};
  for (int column = 0; column < end; column += kTile<A>) {
    Part<A> s = {};
    add_dots(s, room, q, t.first, k, column, p.size);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      A best = top[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int query = t.first + my_row<A>() + i, key = column + my_column<A>() + j;
        s[i][j] = p.hidden(query, key) ? lowest : p.score(s[i][j], t.pair, query, key);
        best = s[i][j] > best ? s[i][j] : best;
      }
      best = reduce_row(best, [](A a, A b) { return a > b ? a : b; });
      // A query that sees nothing yet keeps its sum of 0.
      const A shift = best == lowest ? A(0) : best, keep = math::exp(top[i] - shift);
      top[i] = best;
      total[i] *= keep;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[i][j] = math::exp(s[i][j] - shift);
        total[i] += s[i][j];
        sums[i][j] *= keep;
      }
    }
    add_weighted(sums, room, s, v, column, t.at, p.values);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    total[i] = reduce_row(total[i], Plus{});
    const bool blind = total[i] == 0;
    const A factor = blind ? A(0) : 1 / total[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] *= factor;
    const int query = t.first + my_row<A>() + i;
    if (t.at == 0 && my_column<A>() == 0 && query < p.queries)
      to.write(int64_t{t.pair} * p.queries + query, blind ? A(0) : top[i], blind ? -lowest : math::log(total[i]));
  }
  write_part(out.rows(t.pair, p.heads, p.queries), sums, t.first, t.at, p.values);
}

// Computes dots [pairs, queries]: for each row, the sum of dout * out.
template <class T>
__global__ void __launch_bounds__(256)
    backward_dots(Problem<T> p, acc_t<T>* dots, int64_t count, Heads<const T> outs, Heads<const T> douts) {
  using A = acc_t<T>;
  const int64_t n = int64_t{blockIdx.x} * warps() + warp();
  const int pair = static_cast<int>(n / p.queries), query = static_cast<int>(n % p.queries);
  if (n >= count) return;
  const T *out = outs.rows(pair, p.heads, p.queries).row(query), *d = douts.rows(pair, p.heads, p.queries).row(query);
  A sum = 0;
  for (int c = lane(); c < p.values; c += 32) sum += A(d[c]) * A(out[c]);
  sum = warp_reduce<Plus>(sum);
  if (lane() == 0) dots[n] = sum;
}

enum class Of { q, k, v };

template <class T, Of kOf>
__global__ void __launch_bounds__(kThreads<acc_t<T>>)
    backward_rows(Problem<T> p, Heads<T> out, KnownSums<acc_t<T>> known, const acc_t<T>* dots, Heads<const T> qs,
                  Heads<const T> ks, Heads<const T> vs, Heads<const T> douts) {
  using A = acc_t<T>;
  constexpr bool kQueries = kOf == Of::q;  // rows are queries
  Room<A>& room = shared<Room<A>>();
  const int count = kQueries ? p.queries : p.keys, others = kQueries ? p.keys : p.queries;
  const int width = kOf == Of::v ? p.values : p.size;
  const Task t = task<A>(count, width);
  const auto q = qs.rows(t.pair, p.heads, p.queries), dout = douts.rows(t.pair, p.heads, p.queries);
  const auto k = ks.rows(t.pair, p.heads, p.keys), v = vs.rows(t.pair, p.heads, p.keys);
  const int64_t queries = int64_t{t.pair} * p.queries;
  dots += queries;
  const int begin = p.causal && !kQueries && t.first > p.ahead ? (t.first - p.ahead) / kTile<A> * kTile<A> : 0;
  const int end = kQueries ? p.visible(t.first + kTile<A>) : others;
  Part<A> sums = {};
  for (int column = begin; column < end; column += kTile<A>) {
    Part<A> s = {}, d = {};
    add_dots(s, room, kQueries ? q : k, t.first, kQueries ? k : q, column, p.size);
    if constexpr (kOf != Of::v) add_dots(d, room, kQueries ? dout : v, t.first, kQueries ? v : dout, column, p.values);
    for_part([&](int i, int j) {
      const int row = t.first + my_row<A>() + i, other = column + my_column<A>() + j;
      const int query = kQueries ? row : other, key = kQueries ? other : row;
      if (p.hidden(query, key)) return void(s[i][j] = 0);
      s[i][j] = math::exp(known.below(queries + query, p.score(s[i][j], t.pair, query, key)));
      if constexpr (kOf != Of::v) s[i][j] *= d[i][j] - dots[query];
    });
    add_weighted(sums, room, s, kOf == Of::q ? k : kOf == Of::k ? q : dout, column, t.at, width);
  }
  for_part([&](int i, int j) { sums[i][j] *= kOf == Of::v ? A(1) : p.scale; });
  write_part(out.rows(t.pair, p.heads, count), sums, t.first, t.at, width);
}

template <class T> Problem<T> problem(kernels::AttentionSpec spec, const kernels::AttentionInputs& in) {
  for (const Tensor* t : {&in.q, &in.k, &in.v})
    for (int64_t n : t->shape()) check(n < int64_t{1} << 30, "attention: shape ", t->shape(), " is too large");
  const auto size = [](const Tensor& t, int d) { return static_cast<int>(t.size(d)); };
  Problem<T> p{size(in.q, 1),
               size(in.q, 2),
               size(in.k, 2),
               size(in.q, 3),
               size(in.v, 3),
               spec.causal,
               static_cast<int>(spec.ahead),
               {},
               acc_t<T>(spec.scale),
               read_or_null<T>(in.mask)};
  if (in.mask.defined()) std::copy_n(in.mask.strides().begin(), 4, p.mask_stride);
  return p;
}
// Blocks for [pairs, rows, width].
template <class T> Shape blocks(int64_t pairs, int64_t rows, int64_t width) {
  constexpr int tile = kTile<acc_t<T>>;
  return blocks_of(pairs * ceil_div(rows, tile) * std::max<int64_t>(1, ceil_div(width, tile)), kThreads<acc_t<T>>);
}

}  // namespace

void attention_forward(kernels::AttentionSpec spec, const Tensor& out, const kernels::AttentionSums& sums,
                       const kernels::AttentionInputs& in) {
  if (sums.lse.numel() == 0 || attention_forward_bf16(spec, out, sums.lse, in)) return;
  visit_floating(in.q.dtype(), "attention", [&]<class T>() {
    launch("attention_forward.rows", &forward_rows<T>,
           blocks<T>(in.q.size(0) * in.q.size(1), in.q.size(2), out.size(3)), stream_of(out), problem<T>(spec, in),
           write_heads<T>(out), Sums<acc_t<T>>{write_or_null<acc_t<T>>(sums.top), write<acc_t<T>>(sums.lse)},
           read_heads<T>(in.q), read_heads<T>(in.k), read_heads<T>(in.v));
  });
}

void attention_backward(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                        const kernels::AttentionSaved& saved) {
  if (attention_backward_bf16(spec, out, saved)) return;
  const Tensor &q = saved.in.q, &k = saved.in.k, &v = saved.in.v;
  visit_floating(q.dtype(), "attention", [&]<class T>() {
    using A = acc_t<T>;
    const int64_t pairs = q.size(0) * q.size(1), rows = saved.sums.lse.numel();
    const Problem<T> p = problem<T>(spec, saved.in);
    const auto dout = read_heads<T>(saved.dout);
    const Scratch scratch(saved.dout.device(), std::max<int64_t>(1, rows) * int64_t{sizeof(A)});
    A* dots = scratch.as<A>();
    if (rows > 0)
      launch("attention_backward.dots", &backward_dots<T>, blocks_of(ceil_div(rows, 8), 256), stream_of(q), p, dots,
             rows, read_heads<T>(saved.out), dout);
    const auto run = [&](const char* name, auto kernel, const Tensor& to) {
      if (to.numel() > 0)
        launch(name, kernel, blocks<T>(pairs, to.size(2), to.size(3)), stream_of(q), p, write_heads<T>(to),
               KnownSums<A>{read_or_null<A>(saved.sums.top), saved.sums.lse.template data<A>()}, dots, read_heads<T>(q),
               read_heads<T>(k), read_heads<T>(v), dout);
    };
    run("attention_backward.q", &backward_rows<T, Of::q>, out.dq);
    run("attention_backward.k", &backward_rows<T, Of::k>, out.dk);
    run("attention_backward.v", &backward_rows<T, Of::v>, out.dv);
  });
}

}  // namespace isonorm::gpu
