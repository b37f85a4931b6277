// Copies with conversion, and fills.
#include "core/kernels/copy.h"

#include <cstring>

#include "core/cpu/strided.h"
#include "core/cpu/target.h"
#include "core/formulas/convert.h"

namespace isonorm::kernels::cpu {
namespace {

template <class To, class From> void copy_loop(const Tensor& dst, const Tensor& src) {
  const From* ps = src.data<From>();
  To* pd = dst.mutable_data<To>();
  const Loop<2> loop = loop_over(dst, src);
  for_each_row(loop, element_blocks(loop.count), [&](auto at, int64_t n) {
    To* __restrict d = pd + at[0];
    const From* __restrict s = ps + at[1];
    const int64_t sd = loop.inner(0), ss = loop.inner(1);
    if (sd == 1 && ss == 1) {
      if constexpr (std::is_same_v<To, From>) {
        std::memcpy(d, s, n * sizeof(To));
      } else {
#pragma omp simd
        for (int64_t k = 0; k < n; ++k) d[k] = convert<To>(s[k]);
      }
    } else {
      for (int64_t k = 0; k < n; ++k) d[k * sd] = convert<To>(s[k * ss]);
    }
  });
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
