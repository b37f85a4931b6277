// GELU after a bias, and its gradient with the bias gradient, each one pass over memory.
#include "core/kernels/bias_gelu.h"

#include "core/cpu/lanes.h"
#include "core/cpu/target.h"
#include "core/math/gelu.h"
#include "core/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

struct Erf {
  template <class A> ISO_HD static A f(A x) { return math::gelu(x); }
  template <class A> ISO_HD static A df(A x) { return math::gelu_grad(x); }
};
struct Tanh {
  template <class A> ISO_HD static A f(A x) { return math::gelu_tanh(x); }
  template <class A> ISO_HD static A df(A x) { return math::gelu_tanh_grad(x); }
};

template <class Form, class T> void forward(const Tensor& out, const Tensor& in, const Tensor& b) {
  using A = acc_t<T>;
  const T *x = in.data<T>(), *bias = b.data<T>();
  T* y = out.mutable_data<T>();
  const int64_t w = b.numel(), rows = w ? in.numel() / w : 0;
  parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, w)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for_lanes<A>(w, [&](int64_t i, auto lanes) {
        const Vec<A> v = lanes.load(x + r * w + i) + lanes.load(bias + i);
        lanes.store(y + r * w + i, map_lanes<A>(v, [](A a) { return Form::f(a); }));
      });
  });
}

template <class Form, class T>
void backward(const Tensor& out, const Tensor& bias_out, const Tensor& scratch, const Tensor& g, const Tensor& in,
              const Tensor& b) {
  using A = acc_t<T>;
  const T *x = in.data<T>(), *dy = g.data<T>(), *bias = b.data<T>();
  T *dx = out.mutable_data<T>(), *dbias = bias_out.mutable_data<T>();
  A* partial = scratch.mutable_data<A>();
  const int64_t w = b.numel(), rows = w ? in.numel() / w : 0, block = bias_gelu_block_rows(rows);
  parallel_for(rows, block, [&](int64_t begin, int64_t end) {
    A* sum = partial + begin / block * w;
    std::fill_n(sum, w, A(0));
    for (int64_t r = begin; r < end; ++r)
      for_lanes<A>(w, [&](int64_t i, auto lanes) {
        const Vec<A> v = lanes.load(x + r * w + i) + lanes.load(bias + i);
        const Vec<A> d = lanes.load(dy + r * w + i) * map_lanes<A>(v, [](A a) { return Form::df(a); });
        lanes.store(dx + r * w + i, d);
        lanes.store(sum + i, lanes.load(sum + i) + lanes.keep(d));
      });
  });
  const int64_t blocks = bias_gelu_blocks(rows);
  for_lanes<A>(w, [&](int64_t i, auto lanes) {
    Vec<A> sum{};
    for (int64_t k = 0; k < blocks; ++k) sum += lanes.load(partial + k * w + i);
    lanes.store(dbias + i, sum);
  });
}

}  // namespace

template <Isa I> void bias_gelu(const Tensor& y, const Tensor& x, const Tensor& bias, bool tanh_form) {
  visit_floating(x.dtype(), "bias_gelu",
                 [&]<class T>() { tanh_form ? forward<Tanh, T>(y, x, bias) : forward<Erf, T>(y, x, bias); });
}

template <Isa I>
void bias_gelu_backward(const Tensor& dx, const Tensor& dbias, const Tensor& partial, const Tensor& dy, const Tensor& x,
                        const Tensor& bias, bool tanh_form) {
  visit_floating(x.dtype(), "bias_gelu", [&]<class T>() {
    tanh_form ? backward<Tanh, T>(dx, dbias, partial, dy, x, bias) : backward<Erf, T>(dx, dbias, partial, dy, x, bias);
  });
}

template void bias_gelu<kTarget>(const Tensor&, const Tensor&, const Tensor&, bool);
template void bias_gelu_backward<kTarget>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                          const Tensor&, bool);

}  // namespace isonorm::kernels::cpu
