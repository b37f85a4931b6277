// arg_max, topk, search_sorted: positions by the order of values. NaN is the largest; of equal values the earlier comes
// first.
//
// arg_max_each: a thread for each of outer x inner results, if `length` is short or if neighbouring threads read
// neighbouring elements. arg_max_rows (inner 1): a block for each row. Both read every element once.
//
// topk_sort (rows of at most kSorted): a block sorts all positions of a row in shared memory (bitonic) and writes the
// first k. topk_choose (k up to kChosen): a block for each row finds one result after the other, each the best element
// that comes after the previous result. This takes k passes over the row, from cache, and no extra memory.
// merge_places: topk_sort's network on places in global memory, with a launch for each of its steps and a thread for
// each exchange; first_places writes the first k.
//
// search_sorted: a thread for each result, by binary search.
#include <bit>

#include "core/kernels/index.h"
#include "core/kernels/reduce.h"
#include "gpu/memory.h"
#include "gpu/rows.cuh"
#include "gpu/walk.cuh"

namespace isonorm::gpu {
namespace {

using kernels::ReduceShape;

constexpr int64_t kShort = 64;
constexpr int kSorted = 1024;
constexpr int64_t kChosen = 64;

// A value and its position. The earlier of equal values is better; NaN is better than any number.
template <class A> struct Placed {
  A value;
  int64_t at;
  __device__ __forceinline__ bool behind(A v, int64_t place) const {
    if (v != v) return value == value || place < at;
    return v > value || (v == value && place < at);
  }
  __device__ __forceinline__ void take(A v, int64_t place) {
    if (behind(v, place)) value = v, at = place;
  }
};

template <class T> __global__ void __launch_bounds__(256) arg_max_each(int64_t* index, const T* x, ReduceShape s) {
  using A = acc_t<T>;
  const int64_t e = element();
  if (e >= s.outer * s.inner) return;
  const T* p = x + first_of(e, s.length, s.inner);
  Placed<A> best{A(p[0]), 0};
  for (int64_t k = 1; k < s.length; ++k) best.take(A(p[k * s.inner]), k);
  index[e] = best.at;
}

// The best value of the block, the same in each thread. A thread without a value passes a position of at least n.
template <class A> __device__ __forceinline__ Placed<A> best_of_block(Placed<A> best, int64_t n) {
  struct Room {
    Placed<A> v[8];
  };
  Room& room = shared<Room>();
  const auto join = [&](const Placed<A>& other) {
    if (other.at >= n) return;
    if (best.at >= n)
      best = other;
    else
      best.take(other.value, other.at);
  };
  for (int by = 16; by > 0; by /= 2) {
    const A value = __shfl_xor_sync(~0u, best.value, by);
    join({value, __shfl_xor_sync(~0u, best.at, by)});
  }
  __syncthreads();  // the previous result has been read
  if (lane() == 0) room.v[warp()] = best;
  __syncthreads();
  best = room.v[0];
  for (int w = 1; w < 8; ++w) join(room.v[w]);
  return best;
}

template <class T> __global__ void __launch_bounds__(256) arg_max_rows(int64_t* index, const T* x, int64_t n) {
  using A = acc_t<T>;
  const T* p = x + blockIdx.x * n;
  Placed<A> best{A(0), n};
  for (int64_t i = threadIdx.x; i < n; i += 256) {
    if (best.at == n)
      best = {A(p[i]), i};
    else
      best.take(A(p[i]), i);
  }
  best = best_of_block(best, n);
  if (threadIdx.x == 0) index[blockIdx.x] = best.at;
}

template <class T>
__global__ void __launch_bounds__(256) topk_sort(int64_t* index, const T* x, int n, int k, int room_size) {
  using A = acc_t<T>;
  struct Room {
    A value[kSorted];
    int at[kSorted];
  };
  Room& room = shared<Room>();
  const T* p = x + int64_t{blockIdx.x} * n;
  // Places after the row's end are last in any order.
  for (int i = static_cast<int>(threadIdx.x); i < room_size; i += 256) {
    room.value[i] = i < n ? A(p[i]) : A(0);
    room.at[i] = i;
  }
  const auto before = [&](int i, int j) {
    const int a = room.at[i], b = room.at[j];
    if (a >= n || b >= n) return a < b;
    return !Placed<A>{room.value[i], a}.behind(room.value[j], b);
  };
  for (int size = 2; size <= room_size; size *= 2)
    for (int by = size / 2; by > 0; by /= 2) {
      __syncthreads();
      for (int t = static_cast<int>(threadIdx.x); t < room_size / 2; t += 256) {
        const int i = t / by * 2 * by + t % by, j = i + by;
        if (before(i, j) == ((i & size) == 0)) continue;
        const A value = room.value[i];
        const int at = room.at[i];
        room.value[i] = room.value[j], room.at[i] = room.at[j];
        room.value[j] = value, room.at[j] = at;
      }
    }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < k; i += 256) index[int64_t{blockIdx.x} * k + i] = room.at[i];
}

template <class T>
__global__ void __launch_bounds__(256) topk_choose(int64_t* index, const T* x, int64_t n, int64_t k) {
  using A = acc_t<T>;
  const T* p = x + blockIdx.x * n;
  Placed<A> last{A(0), -1};
  for (int64_t j = 0; j < k; ++j) {
    Placed<A> best{A(0), n};  // n: none yet
    for (int64_t i = threadIdx.x; i < n; i += 256) {
      const A v(p[i]);
      if (last.at >= 0 && (last.at == i || last.behind(v, i))) continue;
      if (best.at == n)
        best = {v, i};
      else
        best.take(v, i);
    }
    best = best_of_block(best, n);
    if (threadIdx.x == 0) index[blockIdx.x * k + j] = best.at;
    last = best;
  }
}

// One step of bitonic sorting on rows of room_size places, a power of 2. Places after the row's end are last in any
// order.
template <class T>
__global__ void __launch_bounds__(256) merge_places(int64_t* places, const T* x, int64_t n, int64_t room_size,
                                                    int64_t exchanges, int64_t size, int64_t by) {
  const int64_t e = element();
  if (e >= exchanges) return;
  const int64_t r = e / (room_size / 2), t = e % (room_size / 2), i = t / by * 2 * by + t % by, j = i + by;
  int64_t* at = places + r * room_size;
  const T* p = x + r * n;
  const int64_t a = size == 2 ? i : at[i], b = size == 2 ? j : at[j];
  const bool before = a >= n || b >= n ? a < b : !Placed<acc_t<T>>{acc_t<T>(p[a]), a}.behind(acc_t<T>(p[b]), b);
  const bool stay = before == ((i & size) == 0);
  at[i] = stay ? a : b, at[j] = stay ? b : a;
}

__global__ void __launch_bounds__(256)
    first_places(int64_t* index, const int64_t* places, int64_t results, int64_t k, int64_t room_size) {
  const int64_t e = element();
  if (e < results) index[e] = places[e / k * room_size + e % k];
}

__global__ void __launch_bounds__(256)
    search_rows(int64_t* out, const double* sorted, const double* values, int64_t results, int64_t n, int64_t count) {
  const int64_t e = element();
  if (e >= results) return;
  const double *row = sorted + e / count * n, value = values[e];
  // The first place where `past` holds.
  const auto first = [&](const auto& past) {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (past(row[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  const int64_t at = first([&](double entry) { return value < entry; });
  const double top = row[n - 1];
  out[e] = at < n ? at : first([&](double entry) { return !(entry < top); });
}

}  // namespace

void arg_max(ReduceShape s, const Tensor& index, const Tensor& x) {
  if (index.numel() == 0) return;
  visit_numbers(x.dtype(), "argmax", [&]<class T>() {
    int64_t* to = write<int64_t>(index);
    if (s.inner == 1 && s.length > kShort)
      launch("argmax.rows", &arg_max_rows<T>, blocks_of(s.outer, 256), stream_of(x), to, x.data<T>(), s.length);
    else
      launch("argmax.each", &arg_max_each<T>, one_each(s.outer * s.inner), stream_of(x), to, x.data<T>(), s);
  });
}

void topk(const Tensor& index, const Tensor& x) {
  if (index.numel() == 0) return;
  const int64_t k = index.size(-1), n = x.size(-1), rows = x.numel() / n;
  const auto merge = [&]<class T>() {
    const int64_t room_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
    const Scratch places(x.device(), rows * room_size * 8);
    const int64_t exchanges = rows * room_size / 2;
    for (int64_t size = 2; size <= room_size; size *= 2)
      for (int64_t by = size / 2; by > 0; by /= 2)
        launch("topk.merge_places", &merge_places<T>, one_each(exchanges), stream_of(x), places.as<int64_t>(),
               x.data<T>(), n, room_size, exchanges, size, by);
    launch("topk.first_places", &first_places, one_each(rows * k), stream_of(x), write<int64_t>(index),
           places.as<const int64_t>(), rows * k, k, room_size);
  };
  visit_all(x.dtype(), [&]<class T>() {
    const Shape shape = blocks_of(rows, 256);
    if (n <= kSorted)
      launch("topk.sort", &topk_sort<T>, shape, stream_of(x), write<int64_t>(index), x.data<T>(), static_cast<int>(n),
             static_cast<int>(k), static_cast<int>(std::bit_ceil(static_cast<uint64_t>(n))));
    else if (k > kChosen)
      merge.template operator()<T>();
    else
      launch("topk.choose", &topk_choose<T>, shape, stream_of(x), write<int64_t>(index), x.data<T>(), n, k);
  });
}

void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values) {
  if (out.numel() == 0) return;
  launch("search_sorted.rows", &search_rows, one_each(out.numel()), stream_of(out), write<int64_t>(out),
         sorted.data<double>(), values.data<double>(), out.numel(), sorted.size(-1), out.size(-1));
}

}  // namespace isonorm::gpu
