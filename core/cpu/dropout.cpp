// Dropout: the mask is made from the counter where it is needed and never stored.
#include "core/kernels/dropout.h"

#include <cmath>

#include "core/cpu/philox_lanes.h"
#include "core/cpu/target.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {

template <Isa I> void dropout(const Tensor& out, const Tensor& x, double p, Generator state) {
  constexpr int64_t kGroup = 4 * kPhiloxLanes;
  const uint32_t threshold = static_cast<uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1));
  visit_floating(out.dtype(), "dropout", [&]<class T>() {
    using A = acc_t<T>;
    const A scale = static_cast<A>(1 / (1 - p));
    const T* px = x.data<T>();
    T* po = out.mutable_data<T>();
    const int64_t n = out.numel();
    parallel_for(ceil_div(n, kGroup), 32, [&](int64_t begin, int64_t end) {
      alignas(64) uint32_t bits[kGroup];
      for (int64_t group = begin; group < end; ++group) {
        philox_lanes(bits, state.seed, state.offset + static_cast<uint64_t>(group * kPhiloxLanes));
        const int64_t at = group * kGroup, count = std::min(kGroup, n - at);
#pragma omp simd
        for (int64_t k = 0; k < count; ++k) {
          const A v = A(px[at + k]) * scale;
          po[at + k] = T(bits[k] >= threshold ? v : A(0));
        }
      }
    });
  });
}

template void dropout<kTarget>(const Tensor&, const Tensor&, double, Generator);

}  // namespace isonorm::kernels::cpu
