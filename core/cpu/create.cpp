#include "core/kernels/create.h"

#include "core/cpu/strided.h"
#include "core/system/parallel.h"

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

void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower) {
  if (out.numel() == 0) return;
  const int64_t rows = x.size(-2), columns = x.size(-1);
  visit_all(x.dtype(), [&]<class T>() {
    const T* px = x.data<T>();
    T* po = out.mutable_data<T>();
    parallel_for(x.numel() / columns, std::max<int64_t>(1, 16384 / columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        // Columns [0, cut) belong to the lower triangle of this row, [cut, columns) to the strict upper one.
        const int64_t i = r % rows, cut = std::clamp<int64_t>(i + diagonal + (lower ? 1 : 0), 0, columns);
        for (int64_t j = 0; j < columns; ++j)
          po[r * columns + j] = (lower ? j < cut : j >= cut) ? px[r * columns + j] : T(0);
      }
    });
  });
}

}  // namespace isonorm::kernels::cpu
