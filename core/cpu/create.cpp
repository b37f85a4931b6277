#include "core/kernels/create.h"

#include "core/cpu/strided.h"

namespace isonorm::kernels::cpu {

void ramp(const Tensor& out, double begin, double step) {
  const int64_t stride = out.strides().v[0];
  visit_all(out.dtype(), [&]<class T>() {
    T* p = out.mutable_data<T>();
    parallel_for(element_blocks(out.numel()), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) p[i * stride] = static_cast<T>(begin + static_cast<double>(i) * step);
    });
  });
}

}  // namespace isonorm::kernels::cpu
