// Copies with conversion, and fills.
#include "core/kernels/copy.h"

#include <cstring>

#include "core/cpu/strided.h"
#include "core/cpu/target.h"
#include "core/formulas/convert.h"

namespace isonorm::kernels::cpu {
namespace {

template <class To, class From> void copy_row(std::byte* to, int64_t sd, const std::byte* from, int64_t ss, int64_t n) {
  To* __restrict d = reinterpret_cast<To*>(to);
  const From* __restrict s = reinterpret_cast<const From*>(from);
  if (sd != 1 || ss != 1) {
    for (int64_t k = 0; k < n; ++k) d[k * sd] = convert<To>(s[k * ss]);
  } else if constexpr (std::is_same_v<To, From>) {
    std::memcpy(d, s, n * sizeof(To));
  } else {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) d[k] = convert<To>(s[k]);
  }
}

// One walk for all pairs of dtypes, because it takes longer to compile than their row functions.
void walk(decltype(&copy_row<float, float>) row, const Tensor& dst, void* to, const Tensor& src, const void* from) {
  const Loop<2> loop = loop_over(dst, src);
  const int64_t to_size = size_of(dst.dtype()), from_size = size_of(src.dtype());
  for_each_row(loop, element_blocks(loop.count), [&](auto at, int64_t n) {
    row(static_cast<std::byte*>(to) + at[0] * to_size, loop.inner(0),
        static_cast<const std::byte*>(from) + at[1] * from_size, loop.inner(1), n);
  });
}
template <class To, class From> void copy_loop(const Tensor& dst, const Tensor& src) {
  const From* from = src.data<From>();
  walk(&copy_row<To, From>, dst, dst.mutable_data<To>(), src, from);
}

template <class T> void fill_loop(const Tensor& dst, T v) {
  T* p = dst.mutable_data<T>();
  const Loop<1> loop = loop_over(dst);
  for_each_row(loop, element_blocks(loop.count), [&](auto at, int64_t n) {
    for (int64_t k = 0; k < n; ++k) p[at[0] + k * loop.inner(0)] = v;
  });
}

}  // namespace

template <Isa I> void copy(const Tensor& dst, const Tensor& src) {
  visit_all(dst.dtype(),
            [&]<class To>() { visit_all(src.dtype(), [&]<class From>() { copy_loop<To, From>(dst, src); }); });
}

template <Isa I> void round_each(std::span<const Tensor> dst, std::span<const Tensor> src) {
  for (size_t i = 0; i < src.size(); ++i) copy_loop<bf16, float>(dst[i], src[i]);
}

template <Isa I> void fill(const Tensor& dst, double value) {
  visit_all(dst.dtype(), [&]<class T>() { fill_loop(dst, static_cast<T>(value)); });
}

template void copy<kTarget>(const Tensor&, const Tensor&);
template void round_each<kTarget>(std::span<const Tensor>, std::span<const Tensor>);
template void fill<kTarget>(const Tensor&, double);

}  // namespace isonorm::kernels::cpu
