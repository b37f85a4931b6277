// take_rows, add_rows, gather, gather_backward, scatter: rows and elements to and from positions in i64 tensors. If
// check_ids found a position outside of the tensor, the error is thrown later; here the position gives zeros, and
// nothing is added from it.
//
// take_packs, gather_each: a thread for each pack of 16 bytes or element of the result, which it reads and writes.
//
// add_rows: sorts the positions of ids by id, equal ids in order, so that one thread adds everything that goes to an
// element of dx, in order. It sorts by digits of 8 bits from the lowest on, with two launches each:
//   count_digits: a block for each kSlice positions, a thread for each digit, which counts the positions that have it
//   place_digits: the same blocks; a thread adds the counts before its own and writes its digit's positions one by one
// Then find_starts has a thread for each row of dx, which finds by binary search where its positions begin, and
// add_sorted has a thread for each pack of dx, which reads its positions and the packs there, eight in flight.
//
// add_each (gather_backward): a thread for each (outer, inner), along the positions, on a dx of zeros.
//
// scatter: clears numbers, then has a thread for each position, twice: find_last writes the number of the last position
// that goes to an element, put_last stores from it. The largest number is the same in any order of threads.
#include <bit>

#include "core/kernels/index.h"
#include "gpu/memory.h"
#include "gpu/rows.cuh"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

using kernels::IndexShape;

__device__ __forceinline__ bool inside(int64_t id, int64_t length) {
  return static_cast<uint64_t>(id) < static_cast<uint64_t>(length);
}

// Rows of `packs` packs of N elements.
template <int N, class T>
__global__ void __launch_bounds__(256)
    take_packs(T* out, const T* x, const int64_t* ids, int64_t results, int64_t m, int64_t length, int64_t packs) {
  const int64_t e = element();
  if (e >= results) return;
  const int64_t r = e / packs, id = ids[r % m], from = r / m * length + id;
  store<N>(out + e * N, inside(id, length) ? load<N>(x + (from * packs + e % packs) * N) : Pack<T, N>{});
}

template <class T>
__global__ void __launch_bounds__(256)
    gather_each(T* out, const T* x, const int64_t* index, int64_t results, int64_t m, IndexShape s) {
  const int64_t e = element();
  if (e >= results) return;
  const int64_t i = index[e];
  out[e] = inside(i, s.length) ? x[(e / (m * s.inner) * s.length + i) * s.inner + e % s.inner] : T(0);
}

constexpr int kDigits = 256;
constexpr int64_t kSlice = 512;

// Ids that are outside sort after all others.
__device__ __forceinline__ int64_t sorting_key(int64_t id, int64_t length) { return inside(id, length) ? id : length; }

// A slice of the positions `order` (null: 0, 1, 2, ...), and their digits.
struct Slice {
  uint8_t digit[kSlice];
  int64_t at[kSlice];

  // Loads the calling block's slice; all of its threads call it. Returns the number of positions.
  __device__ __forceinline__ int load(const int64_t* order, const int64_t* ids, int64_t m, int64_t length, int shift) {
    const int64_t begin = blockIdx.x * kSlice;
    const int n = static_cast<int>(m - begin < kSlice ? m - begin : kSlice);
    for (int k = static_cast<int>(threadIdx.x); k < n; k += kDigits) {
      at[k] = order ? order[begin + k] : begin + k;
      digit[k] = static_cast<uint8_t>(sorting_key(ids[at[k]], length) >> shift);
    }
    __syncthreads();
    return n;
  }
};

// counts [slices, kDigits]
__global__ void __launch_bounds__(kDigits)
    count_digits(int* counts, const int64_t* order, const int64_t* ids, int64_t m, int64_t length, int shift) {
  Slice& slice = shared<Slice>();
  const int n = slice.load(order, ids, m, length, shift);
  int count = 0;
  for (int k = 0; k < n; ++k) count += slice.digit[k] == threadIdx.x;
  counts[int64_t{blockIdx.x} * kDigits + threadIdx.x] = count;
}

__global__ void __launch_bounds__(kDigits) place_digits(int64_t* sorted, const int* counts, const int64_t* order,
                                                        const int64_t* ids, int64_t m, int64_t length, int shift) {
  struct Room {
    int64_t all[kDigits];
  };
  Slice& slice = shared<Slice>();
  Room& room = shared<Room>();
  int64_t all = 0, before = 0;  // positions with the thread's digit: in all slices, and in slices before this one
  for (int64_t b = 0; b < gridDim.x; ++b) {
    if (b == blockIdx.x) before = all;
    all += counts[b * kDigits + threadIdx.x];
  }
  room.all[threadIdx.x] = all;
  const int n = slice.load(order, ids, m, length, shift);
  for (int d = 0; d < kDigits; ++d) before += d < static_cast<int>(threadIdx.x) ? room.all[d] : 0;
  for (int k = 0; k < n; ++k)
    if (slice.digit[k] == threadIdx.x) sorted[before++] = slice.at[k];
}

// start[i] = the number of keys less than i, for i up to length.
__global__ void __launch_bounds__(256)
    find_starts(int64_t* start, const int64_t* sorted, const int64_t* ids, int64_t m, int64_t length) {
  const int64_t i = element();
  if (i > length) return;
  int64_t low = 0, high = m;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sorting_key(ids[sorted[middle]], length) < i)
      low = middle + 1;
    else
      high = middle;
  }
  start[i] = low;
}

// Rows of `packs` packs of N elements.
template <int N, class T>
__global__ void __launch_bounds__(256) add_sorted(acc_t<T>* dx, const T* g, const int64_t* sorted, const int64_t* start,
                                                  int64_t results, int64_t m, int64_t length, int64_t packs) {
  using A = acc_t<T>;
  constexpr int kFlight = 8;
  const int64_t e = element();
  if (e >= results) return;
  const int64_t r = e / packs, i = r % length, end = start[i + 1];
  const T* from = g + (r / length * m * packs + e % packs) * N;
  A sum[N] = {};
  for (int64_t p = start[i]; p < end; p += kFlight) {
    Pack<T, N> flight[kFlight];
    const int n = static_cast<int>(end - p < kFlight ? end - p : kFlight);
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (u < n) flight[u] = load<N>(from + sorted[p + u] * packs * N);
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (u < n)
        for (int k = 0; k < N; ++k) sum[k] += A(flight[u].v[k]);
  }
  constexpr int M = N < kPack<A> ? N : kPack<A>;
  for (int k = 0; k < N; k += M) {
    Pack<A, M> pack;
    for (int u = 0; u < M; ++u) pack.v[u] = sum[k + u];
    store<M>(dx + e * N + k, pack);
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    add_each(acc_t<T>* dx, const T* g, const int64_t* index, int64_t m, IndexShape s) {
  const int64_t e = element();
  if (e >= s.outer * s.inner) return;
  const int64_t o = e / s.inner, i = e % s.inner;
  for (int64_t j = 0; j < m; ++j) {
    const int64_t at = (o * m + j) * s.inner + i;
    if (inside(index[at], s.length)) dx[(o * s.length + index[at]) * s.inner + i] += acc_t<T>(g[at]);
  }
}

using Number = unsigned long long;  // of a position, from 1 on; 0: none

// The destination of element e of m x inner positions; -1 if it is outside.
__device__ __forceinline__ int64_t target(int64_t e, const int64_t* index, int64_t m, const IndexShape& s) {
  const int64_t i = index[e];
  return inside(i, s.length) ? (e / (m * s.inner) * s.length + i) * s.inner + e % s.inner : -1;
}

__global__ void __launch_bounds__(256) clear(Number* last, int64_t count) {
  const int64_t e = element();
  if (e < count) last[e] = 0;
}

__global__ void __launch_bounds__(256)
    find_last(Number* last, const int64_t* index, int64_t count, int64_t m, IndexShape s) {
  const int64_t e = element();
  if (e >= count) return;
  const int64_t at = target(e, index, m, s);
  if (at >= 0) atomicMax(last + at, static_cast<Number>(e + 1));
}

template <class T>
__global__ void __launch_bounds__(256)
    put_last(T* y, const T* src, const Number* last, const int64_t* index, int64_t count, int64_t m, IndexShape s) {
  const int64_t e = element();
  if (e >= count) return;
  const int64_t at = target(e, index, m, s);
  if (at >= 0 && last[at] == static_cast<Number>(e + 1)) y[at] = src[e];
}

// Positions along the middle dimension of a result of n elements.
int64_t positions(const IndexShape& s, int64_t n) { return n / (s.outer * s.inner); }

}  // namespace

void take_rows(IndexShape s, const Tensor& out, const Tensor& x, const Tensor& ids) {
  if (out.numel() == 0) return;
  visit_all(x.dtype(), [&]<class T>() {
    T* to = write<T>(out);
    const T* from = x.data<T>();
    const auto run = [&]<int N>() {
      launch("take_rows.packs", &take_packs<N, T>, one_each(out.numel() / N), stream_of(x), to, from,
             ids.data<int64_t>(), out.numel() / N, ids.numel(), s.length, s.inner / N);
    };
    if (s.inner % kPack<T> == 0 && aligned(to, from))
      run.template operator()<kPack<T>>();
    else
      run.template operator()<1>();
  });
}

void add_rows(IndexShape s, const Tensor& dx, const Tensor& g, const Tensor& ids) {
  if (dx.numel() == 0) return;
  const int64_t m = ids.numel(), slices = ceil_div(m, kSlice);
  if (m == 0) return gpu::fill(dx, 0);
  const Stream& stream = stream_of(dx);
  const int64_t* id = ids.data<int64_t>();
  const Scratch first(dx.device(), m * 8), second(dx.device(), m * 8), start(dx.device(), (s.length + 1) * 8),
      counts(dx.device(), slices * kDigits * 4);
  int64_t *order = nullptr, *sorted = first.as<int64_t>(), *other = second.as<int64_t>();
  for (int shift = 0; shift < static_cast<int>(std::bit_width(static_cast<uint64_t>(s.length))); shift += 8) {
    launch("add_rows.count_digits", &count_digits, blocks_of(slices, kDigits), stream, counts.as<int>(), order, id, m,
           s.length, shift);
    launch("add_rows.place_digits", &place_digits, blocks_of(slices, kDigits), stream, sorted, counts.as<const int>(),
           order, id, m, s.length, shift);
    order = sorted;
    std::swap(sorted, other);
  }
  launch("add_rows.find_starts", &find_starts, one_each(s.length + 1), stream, start.as<int64_t>(), order, id, m,
         s.length);
  visit_numbers(g.dtype(), "add_rows", [&]<class T>() {
    acc_t<T>* to = write<acc_t<T>>(dx);
    const T* from = g.data<T>();
    const auto run = [&]<int N>() {
      launch("add_rows.add_sorted", &add_sorted<N, T>, one_each(dx.numel() / N), stream, to, from, order,
             start.as<const int64_t>(), dx.numel() / N, m, s.length, s.inner / N);
    };
    if (s.inner % kPack<T> == 0 && aligned(to, from))
      run.template operator()<kPack<T>>();
    else
      run.template operator()<1>();
  });
}

void gather(IndexShape s, const Tensor& out, const Tensor& x, const Tensor& index) {
  if (out.numel() == 0) return;
  visit_all(x.dtype(), [&]<class T>() {
    launch("gather.each", &gather_each<T>, one_each(out.numel()), stream_of(x), write<T>(out), x.data<T>(),
           index.data<int64_t>(), out.numel(), positions(s, out.numel()), s);
  });
}

void gather_backward(IndexShape s, const Tensor& dx, const Tensor& g, const Tensor& index) {
  if (dx.numel() == 0) return;
  if (s.outer * s.inner == 1) return add_rows(s, dx, g, index);
  gpu::fill(dx, 0);
  if (g.numel() == 0) return;
  visit_numbers(g.dtype(), "gather_backward", [&]<class T>() {
    launch("gather_backward.each", &add_each<T>, one_each(s.outer * s.inner), stream_of(dx), write<acc_t<T>>(dx),
           g.data<T>(), index.data<int64_t>(), positions(s, g.numel()), s);
  });
}

void scatter(IndexShape s, const Tensor& y, const Tensor& src, const Tensor& index) {
  const int64_t count = src.numel();
  if (count == 0) return;
  const Stream& stream = stream_of(y);
  const int64_t m = positions(s, count);
  const Scratch last(y.device(), y.numel() * 8);
  launch("scatter.clear", &clear, one_each(y.numel()), stream, last.as<Number>(), y.numel());
  launch("scatter.find_last", &find_last, one_each(count), stream, last.as<Number>(), index.data<int64_t>(), count, m,
         s);
  visit_all(y.dtype(), [&]<class T>() {
    launch("scatter.put_last", &put_last<T>, one_each(count), stream, write<T>(y), src.data<T>(),
           last.as<const Number>(), index.data<int64_t>(), count, m, s);
  });
}

}  // namespace isonorm::gpu
