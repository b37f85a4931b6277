// Dropout: the mask is computed from the counter when it is needed, and never stored.
#include "core/kernels/random.h"

#include "core/cpu/philox_lanes.h"
#include "core/cpu/target.h"
#include "core/formulas/distributions.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {

template <Isa I> void dropout(const Tensor& out, const Tensor& x, double p, Generator state) {
  constexpr int64_t kGroup = 4 * kPhiloxLanes;
  visit_floating(out.dtype(), "dropout", [&]<class T>() {
    using A = acc_t<T>;
    const Dropout<A> drop(p);
    const T* px = x.data<T>();
    T* po = out.mutable_data<T>();
    const int64_t n = out.numel();
    parallel_for(ceil_div(n, kGroup), 32, [&](int64_t begin, int64_t end) {
      alignas(64) uint32_t bits[kGroup];
      for (int64_t group = begin; group < end; ++group) {
        philox_lanes(bits, state.seed, state.offset + static_cast<uint64_t>(group * kPhiloxLanes));
        const int64_t at = group * kGroup, count = std::min(kGroup, n - at);
#pragma omp simd
        for (int64_t k = 0; k < count; ++k) po[at + k] = T(drop(A(px[at + k]), bits[k]));
      }
    });
  });
}

template void dropout<kTarget>(const Tensor&, const Tensor&, double, Generator);

}  // namespace isonorm::kernels::cpu
