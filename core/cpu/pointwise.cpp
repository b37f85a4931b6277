// Pointwise CPU kernels: one vector loop per op over contiguous rows of float or double. Rows that are strided or
// stored as bf16 are first copied to a small buffer, so that every layout runs the same loop.
#include "core/kernels/pointwise.h"

#include <algorithm>

#include "core/cpu/nontemporal.h"
#include "core/cpu/strided.h"
#include "core/cpu/target.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr int64_t kRow = 512;       // elements of a buffer: three buffers stay in the first-level cache
constexpr int64_t kStreamed = 128;  // elements that are computed before they are stored past the caches

template <class A> using Row = A[kRow];

// n <= kRow elements at p, `stride` apart, as contiguous values of the compute type A. Returns p itself if it already
// holds them.
template <class A, class T> const A* load(const T* p, int64_t stride, int64_t n, Row<A>& buffer) {
  if constexpr (std::is_same_v<A, T>)
    if (stride == 1) return p;
  if (stride == 0)
    for (int64_t k = 0; k < n; ++k) buffer[k] = A(p[0]);
  else
    for (int64_t k = 0; k < n; ++k) buffer[k] = A(p[k * stride]);
  return buffer;
}

// Memory for a row of results: in place, or the buffer, which put() stores.
template <class A, class T> A* room(T* p, int64_t stride, Row<A>& buffer) {
  if constexpr (std::is_same_v<A, T>)
    if (stride == 1) return p;
  return buffer;
}
template <class A, class T> void put(T* p, int64_t stride, int64_t n, const A* from) {
  if constexpr (std::is_same_v<A, T>)
    if (p == from) return;
  for (int64_t k = 0; k < n; ++k) p[k * stride] = T(from[k]);
}

// Stores a row function's results past the caches, a few at a time, so that the next ones are computed meanwhile.
template <class A, class B, size_t N, class F>
void nontemporal_row(const F& row, B* y, std::array<const A*, N> x, int64_t n) {
  alignas(64) B results[kStreamed];
  for (int64_t k = 0; k < n; k += kStreamed) {
    const int64_t some = std::min(kStreamed, n - k);
    row(results, x, some);
    for (const A*& p : x) p += some;
    for (int64_t i = 0; i < some; i += kLanes<B>) store_nontemporal<B>(y + k + i, load_lanes<B>(results + i));
  }
  fence_nontemporal(true);
}

enum class Bound { arithmetic, memory };  // what limits a row function

// Runs `row(out, inputs, n)` over all elements of out, of type R, with broadcast inputs of type T. Each may go through
// a buffer. Not inlined, because the walk and its buffers cost more to set up than a small contiguous tensor's row.
template <class T, class R, class F, class... In>
[[gnu::noinline]] void for_buffered_rows(const F& row, const Tensor& out, const In&... inputs) {
  using A = acc_t<T>;
  using B = acc_t<R>;
  constexpr int N = sizeof...(In);
  const std::array<const T*, N> from{inputs.template data<T>()...};
  R* to = out.mutable_data<R>();
  const Loop<1 + N> loop = loop_over(out, inputs...);
  for_each_row(loop, element_blocks(loop.count), [&](auto at, int64_t length) {
    alignas(64) Row<A> in[N];
    alignas(64) Row<B> result;
    for (int64_t k = 0; k < length; k += kRow) {
      const int64_t n = std::min(kRow, length - k);
      std::array<const A*, N> x;
      for (int i = 0; i < N; ++i)
        x[i] = load<A>(from[i] + at[i + 1] + k * loop.inner(i + 1), loop.inner(i + 1), n, in[i]);
      R* o = to + at[0] + k * loop.inner(0);
      B* y = room<B>(o, loop.inner(0), result);
      row(y, x, n);
      put(o, loop.inner(0), n, y);
    }
  });
}

// Like for_buffered_rows(), but without buffers if all elements lie alike.
template <class T, class R, Bound bound = Bound::arithmetic, class F, class... In>
void for_rows(const F& row, const Tensor& out, const In&... inputs) {
  constexpr size_t N = sizeof...(In);
  if constexpr (std::is_same_v<acc_t<T>, T> && std::is_same_v<acc_t<R>, R>)
    if (lie_alike(out, inputs...)) {
      const std::array<const T*, N> from{inputs.template data<T>()...};
      R* to = out.mutable_data<R>();
      bool nontemporal = false;
      if constexpr (bound == Bound::memory)  // an overwritten operand is in a cache
        nontemporal = passes_caches<R>(out, out.numel()) && std::find(from.begin(), from.end(), to) == from.end();
      return parallel_for(element_blocks(out.numel()), [&](int64_t begin, int64_t end) {
        std::array<const T*, N> x = from;
        for (const T*& p : x) p += begin;
        nontemporal ? nontemporal_row(row, to + begin, x, end - begin) : row(to + begin, x, end - begin);
      });
    }
  for_buffered_rows<T, R>(row, out, inputs...);
}

template <class Op, class A> void unary_row(A* y, const A* x, int64_t n, const A* p) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) y[k] = ops::value<Op>(x[k], p);
}
template <class Op, class A> void unary_backward_row(A* dx, const A* g, const A* s, int64_t n, const A* p) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) dx[k] = ops::gradient<Op>(g[k], s[k], p);
}
template <class Op, class A, class B> void binary_row(B* y, const A* a, const A* b, int64_t n) {
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) y[k] = B(Op::f(a[k], b[k]));
}

// Row functions of a list of ops for compute type A, indexed like the list.
template <class A, class List> struct Rows;
template <class A, class... Ops> struct Rows<A, ops::List<Ops...>> {
  static constexpr void (*unary[])(A*, const A*, int64_t, const A*) = {&unary_row<Ops, A>...};
  static constexpr void (*unary_backward[])(A*, const A*, const A*, int64_t,
                                            const A*) = {&unary_backward_row<Ops, A>...};
};
template <class A, class B, class List> struct BinaryRows;
template <class A, class B, class... Ops> struct BinaryRows<A, B, ops::List<Ops...>> {
  static constexpr void (*table[])(B*, const A*, const A*, int64_t) = {&binary_row<Ops, A, B>...};
};

template <class T> void where_loop(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const uint8_t* pc = condition.data<uint8_t>();
  const T *pa = a.data<T>(), *pb = b.data<T>();
  T* po = out.mutable_data<T>();
  const Loop<4> loop = loop_over(out, condition, a, b);
  for_each_row(loop, element_blocks(loop.count), [&](auto at, int64_t n) {
    for (int64_t k = 0; k < n; ++k)
      po[at[0] + k * loop.inner(0)] =
          pc[at[1] + k * loop.inner(1)] ? pa[at[2] + k * loop.inner(2)] : pb[at[3] + k * loop.inner(3)];
  });
}

}  // namespace

template <Isa I> void unary(int op, const Tensor& out, const Tensor& x, Numbers numbers) {
  visit_floating(out.dtype(), "unary", [&]<class T>() {
    using A = acc_t<T>;
    const A p[2] = {A(numbers.p[0]), A(numbers.p[1])};
    const auto row = Rows<A, ops::Unary>::unary[op];
    for_rows<T, T>([&](A* y, auto in, int64_t n) { row(y, in[0], n, p); }, out, x);
  });
}

template <Isa I> void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, Numbers numbers) {
  visit_floating(dx.dtype(), "unary_backward", [&]<class T>() {
    using A = acc_t<T>;
    const A p[2] = {A(numbers.p[0]), A(numbers.p[1])};
    const auto row = Rows<A, ops::Unary>::unary_backward[op];
    for_rows<T, T>([&](A* y, auto in, int64_t n) { row(y, in[0], in[1], n, p); }, dx, g, saved);
  });
}

template <Isa I> void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b) {
  visit_numbers(out.dtype(), "binary", [&]<class T>() {
    using A = acc_t<T>;
    const auto row = BinaryRows<A, A, ops::Binary>::table[op];
    for_rows<T, T, Bound::memory>([&](A* y, auto in, int64_t n) { row(y, in[0], in[1], n); }, out, a, b);
  });
}

template <Isa I> void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b) {
  visit_all(a.dtype(), [&]<class T>() {
    using A = acc_t<T>;
    const auto row = BinaryRows<A, uint8_t, ops::Comparison>::table[op];
    for_rows<T, uint8_t>([&](uint8_t* y, auto in, int64_t n) { row(y, in[0], in[1], n); }, out, a, b);
  });
}

template <Isa I> void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  visit_all(out.dtype(), [&]<class T>() { where_loop<T>(out, condition, a, b); });
}

template void unary<kTarget>(int, const Tensor&, const Tensor&, Numbers);
template void unary_backward<kTarget>(int, const Tensor&, const Tensor&, const Tensor&, Numbers);
template void binary<kTarget>(int, const Tensor&, const Tensor&, const Tensor&);
template void compare<kTarget>(int, const Tensor&, const Tensor&, const Tensor&);
template void where<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
