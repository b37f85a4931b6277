// Reductions, argmax and running sums.
#include "core/kernels/reduce.h"

#include <limits>
#include <type_traits>

#include "core/cpu/target.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

template <class A>
constexpr A kGreatest = std::is_integral_v<A> ? std::numeric_limits<A>::max() : std::numeric_limits<A>::infinity();
template <class A> constexpr A kLeast = std::is_integral_v<A> ? std::numeric_limits<A>::min() : -kGreatest<A>;
template <ReduceOp K, class A>
constexpr A identity = K == ReduceOp::sum       ? A(0)
                       : K == ReduceOp::product ? A(1)
                       : K == ReduceOp::max     ? kLeast<A>
                                                : kGreatest<A>;

template <ReduceOp K, class A> ISO_HD A combine(A a, A b) {
  if constexpr (K == ReduceOp::sum) return a + b;
  if constexpr (K == ReduceOp::product) return a * b;
  if constexpr (K == ReduceOp::max) return b > a || b != b ? b : a;
  return b < a || b != b ? b : a;
}

// Reduces n contiguous elements. Sixteen running results break the dependency between additions and bound the rounding
// error.
template <ReduceOp K, class A, class T> A reduce_row(const T* x, int64_t n) {
  constexpr int kLanes = 16;
  A lane[kLanes];
  for (int l = 0; l < kLanes; ++l) lane[l] = identity<K, A>;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] = combine<K>(lane[l], A(x[i + l]));
  for (; i < n; ++i) lane[i % kLanes] = combine<K>(lane[i % kLanes], A(x[i]));
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = combine<K>(lane[l], lane[l + width]);
  return lane[0];
}

template <class T> constexpr int64_t kLine = 64 / sizeof(T);  // elements of a cache line

// Reduces n columns of `length` rows into acc[0..n); rows are `inner` elements apart. Prefetches by itself, because the
// hardware does not prefetch parts of rows that are far apart.
template <ReduceOp K, class A, class T>
void reduce_columns(A* __restrict acc, const T* __restrict x, int64_t length, int64_t inner, int64_t n) {
  constexpr int64_t ahead = 2;
  for (int64_t j = 0; j < n; ++j) acc[j] = identity<K, A>;
  for (int64_t r = 0; r < length; ++r) {
    for (int64_t j = 0; j < n; j += kLine<T>) __builtin_prefetch(x + (r + ahead) * inner + j);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) acc[j] = combine<K>(acc[j], A(x[r * inner + j]));
  }
}

template <ReduceOp K, class From, class To>
void reduce_stage(const From* x, To* out, int64_t outer, int64_t length, int64_t inner, int64_t block) {
  using A = acc_t<To>;
  constexpr int64_t kColumns = 256;
  const int64_t blocks = std::max<int64_t>(1, ceil_div(length, block));
  const int64_t strips = ceil_div(inner, kColumns);
  const int64_t cost = std::min(block, length) * std::min(inner, kColumns);
  parallel_for(outer * blocks * strips, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cost)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t strip = i % strips, b = i / strips % blocks, o = i / strips / blocks;
                   const int64_t first = b * block, n = std::min(block, length - first);
                   const From* row = x + (o * length + first) * inner;
                   To* to = out + (o * blocks + b) * inner;
                   if (inner == 1) {
                     to[0] = To(reduce_row<K, A>(row, n));
                     continue;
                   }
                   A acc[kColumns];
                   const int64_t c = strip * kColumns, width = std::min(kColumns, inner - c);
                   reduce_columns<K>(acc, row + c, n, inner, width);
                   for (int64_t j = 0; j < width; ++j) to[c + j] = To(acc[j]);
                 }
               });
}

// Long reductions are divided into blocks whose partial results are combined in order. The blocks depend only on the
// shape, so the bits do not depend on the number of threads.
template <ReduceOp K> void reduce_kind(ReduceShape s, const Tensor& out, const Tensor& x) {
  constexpr int64_t kElements = 4096;  // elements of a block
  const int64_t block = std::max<int64_t>(64, kElements / std::max<int64_t>(1, s.inner));
  const int64_t blocks = std::max<int64_t>(1, ceil_div(s.length, block));
  const auto run = [&]<class T>() {
    T* po = out.mutable_data<T>();
    if (blocks == 1)
      return reduce_stage<K>(x.data<T>(), po, s.outer, s.length, s.inner, std::max<int64_t>(1, s.length));
    using A = acc_t<T>;
    const Workspace<A> partial(s.outer * blocks * s.inner);
    reduce_stage<K>(x.data<T>(), partial.data(), s.outer, s.length, s.inner, block);
    reduce_stage<K>(static_cast<const A*>(partial.data()), po, s.outer, blocks, s.inner, blocks);
  };
  visit_numbers(x.dtype(), "reduce", run);
}

}  // namespace

template <Isa I> void reduce(ReduceOp kind, ReduceShape s, const Tensor& out, const Tensor& x) {
  switch (kind) {
    case ReduceOp::sum:
      return reduce_kind<ReduceOp::sum>(s, out, x);
    case ReduceOp::max:
      return reduce_kind<ReduceOp::max>(s, out, x);
    case ReduceOp::min:
      return reduce_kind<ReduceOp::min>(s, out, x);
    case ReduceOp::product:
      return reduce_kind<ReduceOp::product>(s, out, x);
  }
}

template <Isa I> void arg_max(ReduceShape s, const Tensor& index, const Tensor& x) {
  visit_numbers(x.dtype(), "argmax", [&]<class T>() {
    const T* px = x.data<T>();
    int64_t* po = index.mutable_data<int64_t>();
    parallel_for(s.outer * s.inner, std::max<int64_t>(1, 16384 / s.length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* p = px + i / s.inner * s.length * s.inner + i % s.inner;
        int64_t best = 0;
        acc_t<T> top = p[0];
        for (int64_t r = 1; r < s.length && top == top; ++r) {
          const acc_t<T> v = p[r * s.inner];
          if (v > top || v != v) top = v, best = r;
        }
        po[i] = best;
      }
    });
  });
}

// The sum of all earlier parts is added to the running sum inside of a part, and likewise for parts of parts. The error
// is 2 kPart + n / kPart^2 roundings rather than n, with no more dependent additions than before.
template <Isa I> void cumsum(ReduceShape s, const Tensor& out, const Tensor& x, bool reverse) {
  constexpr int64_t kPart = 64;
  visit_numbers(x.dtype(), "cumsum", [&]<class T>() {
    using A = acc_t<T>;
    const T* px = x.data<T>();
    T* po = out.mutable_data<T>();
    parallel_for(s.outer * s.inner, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.length)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t step = reverse ? -s.inner : s.inner;
                     int64_t at = (i / s.inner * s.length + (reverse ? s.length - 1 : 0)) * s.inner + i % s.inner;
                     A total = 0, whole = 0;  // sums of all finished parts of parts, and of finished parts since
                     for (int64_t k = 0; k < s.length; k += kPart) {
                       if (k % (kPart * kPart) == 0) total += whole, whole = 0;
                       A part = 0;
                       for (int64_t j = std::min(kPart, s.length - k); j > 0; --j, at += step) {
                         part += A(px[at]);
                         po[at] = T(total + (whole + part));
                       }
                       whole += part;
                     }
                   }
                 });
  });
}

// A strip of columns stays in cache between its sums and their subtraction. `out` may be x. If sums have the elements'
// type (f32, f64), the rounding error of a mean is the same in all elements and would remain as their mean, which
// readers of the residual stream add up. So a second pass subtracts what remains.
template <Isa I> void recentre(ReduceShape s, const Tensor& out, const Tensor& x) {
  constexpr int64_t kColumns = 128, kUnit = 32;
  visit_floating(x.dtype(), "recentre", [&]<class T>() {
    using A = acc_t<T>;
    constexpr int kPasses = std::is_same_v<A, T> ? 2 : 1;
    constexpr int64_t kRows = std::is_same_v<A, T> ? 8 : 64;  // rows summed separately, to bound the rounding error
    T* po = out.mutable_data<T>();
    const A divisor = static_cast<A>(s.length);
    const Partition strips = even_blocks(s.inner, kColumns, kUnit);
    const int64_t cost = std::max<int64_t>(1, s.length * s.inner / std::max<int64_t>(1, strips.count));
    const auto take_mean = [&](const T* from, T* to, int64_t width) {
      if (s.inner == 1) {
        const A mean = reduce_row<ReduceOp::sum, A>(from, s.length) / divisor;
        for (int64_t r = 0; r < s.length; ++r) to[r] = T(A(from[r]) - mean);
        return;
      }
      A mean[kColumns] = {}, part[kColumns];
      for (int64_t r = 0; r < s.length; r += kRows) {
        reduce_columns<ReduceOp::sum>(part, from + r * s.inner, std::min(kRows, s.length - r), s.inner, width);
        for (int64_t j = 0; j < width; ++j) mean[j] += part[j];
      }
      for (int64_t j = 0; j < width; ++j) mean[j] /= divisor;
      for (int64_t r = 0; r < s.length; ++r, from += s.inner, to += s.inner) {
        for (int64_t j = 0; j < width; j += kLine<T>) __builtin_prefetch(to + s.inner + j, 1);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[j] = T(A(from[j]) - mean[j]);
      }
    };
    parallel_for(s.outer * strips.count, std::max<int64_t>(1, 16384 / cost), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = strips.begin(i % strips.count), width = strips.begin(i % strips.count + 1) - c;
        const int64_t at = i / strips.count * s.length * s.inner + c;
        take_mean(x.data<T>() + at, po + at, width);
        for (int pass = 1; pass < kPasses; ++pass) take_mean(po + at, po + at, width);
      }
    });
  });
}

template <Isa I> void sum_blocks(const Tensor& out, const Tensor& blocks, int64_t parts, int64_t ranks) {
  constexpr int64_t kAtOnce = 1024;  // sums that stay in the first-level cache
  const int64_t block = out.numel();
  visit_all(blocks.dtype(), [&]<class T>() {
    T* const sum = out.mutable_data<T>();
    const T* const all = blocks.data<T>();
    parallel_for(block, kAtOnce, [&](int64_t begin, int64_t end) {
      acc_t<T> s[kAtOnce];
      for (int64_t at = begin; at < end; at += kAtOnce) {
        const int64_t n = std::min(kAtOnce, end - at);
        for (int64_t i = 0; i < n; ++i) s[i] = all[at + i];
        for (int64_t r = 0; r < ranks; ++r)
          for (int64_t p = r == 0 ? 1 : 0; p < parts; ++p) {
            const T* x = all + (p * ranks + r) * block + at;
            for (int64_t i = 0; i < n; ++i) s[i] += static_cast<acc_t<T>>(x[i]);
          }
        for (int64_t i = 0; i < n; ++i) sum[at + i] = static_cast<T>(s[i]);
      }
    });
  });
}

template void reduce<kTarget>(ReduceOp, ReduceShape, const Tensor&, const Tensor&);
template void arg_max<kTarget>(ReduceShape, const Tensor&, const Tensor&);
template void cumsum<kTarget>(ReduceShape, const Tensor&, const Tensor&, bool);
template void recentre<kTarget>(ReduceShape, const Tensor&, const Tensor&);
template void sum_blocks<kTarget>(const Tensor&, const Tensor&, int64_t, int64_t);

}  // namespace isonorm::kernels::cpu
