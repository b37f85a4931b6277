// Rotary position embedding: one pass over memory, a block of rows per thread.
#include "core/kernels/attention.h"

#include <algorithm>

#include "core/cpu/target.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {

template <Isa I>
void rotary(RotaryShape s, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  visit_floating(x.dtype(), "rotary", [&]<class T>() {
    using A = acc_t<T>;
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    const A *c = cosine.data<A>(), *d = sine.data<A>();
    const int64_t row = s.heads * s.size, half = s.size / 2;
    const A sign = s.back ? A(-1) : A(1);
    parallel_for(s.outer * s.time, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, row)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const A *cr = c + r % s.time * half, *sr = d + r % s.time * half;
                     for (int64_t h = 0; h < s.turned; ++h) {
                       const T* p = in + r * row + h * s.size;
                       T* q = out + r * row + h * s.size;
                       const auto turn = [&](int64_t first, int64_t second, int64_t i) {
                         const A a = A(p[first]), b = A(p[second]), sine_i = sign * sr[i];
                         q[first] = T(a * cr[i] - b * sine_i);
                         q[second] = T(a * sine_i + b * cr[i]);
                       };
                       if (s.halves)
                         for (int64_t i = 0; i < half; ++i) turn(i, half + i, i);
                       else
                         for (int64_t i = 0; i < half; ++i) turn(2 * i, 2 * i + 1, i);
                     }
                     std::copy(in + r * row + s.turned * s.size, in + (r + 1) * row, out + r * row + s.turned * s.size);
                   }
                 });
  });
}

template void rotary<kTarget>(RotaryShape, const Tensor&, const Tensor&, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
