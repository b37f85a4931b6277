#include "autograd/fused/mlp.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shared.h"
#include "autograd/rounded_masters.h"
#include "core/kernels/matmul.h"
#include "core/kernels/mlp.h"
#include "core/view.h"

namespace isonorm {
namespace {

void check_layer(const Tensor& w, const Tensor& b, const Tensor& x, int64_t in, const char* name) {
  check(w.rank() == 2 && w.size(1) == in && detail::fits_rows(w.dtype(), x.dtype()), "mlp: ", name, " is ", w.dtype(),
        ' ', w.shape(), ", expected ", x.dtype(), " [..., ", in, "]");
  if (b.defined())
    check(b.shape() == Dims{w.size(0)} && b.dtype() == w.dtype(), "mlp: bias ", b.dtype(), ' ', b.shape(),
          " does not fit ", name, ' ', w.dtype(), ' ', w.shape());
}

}  // namespace

namespace {
Tensor activated(const Tensor& h, bool tanh_form) { return tanh_form ? gelu_tanh(h) : gelu(h); }
}  // namespace

Tensor reference::mlp(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
                      GeluForm form) {
  return linear(activated(linear(x, w1, b1), form == GeluForm::tanh), w2, b2);
}

Tensor mlp(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2, GeluForm form) {
  check(is_floating(x.dtype()) && x.rank() >= 1, "mlp: input is ", x.dtype(), ' ', x.shape(),
        ", expected a floating one, [..., in]");
  check_same_device("mlp", x, w1, b1, w2, b2);
  check_layer(w1, b1, x, x.size(-1), "w1");
  check_layer(w2, b2, x, w1.size(0), "w2");
  // With few rows, separate products widen bf16 as they read it and sum in another order (core/cpu/few_rows.h).
  const bool few = x.numel() < 16 * x.size(-1) && !kernels::bf16_products(x.device());
  const bool op_by_op = x.dtype() == DType::bf16 && (few || !kernels::reads_bf16(x.device()));
  if (use_reference() || x.numel() == 0 || w1.numel() == 0 || w2.numel() == 0)
    return reference::mlp(x, w1, b1, w2, b2, form);
  if (op_by_op) return detail::refuse_second_gradient("mlp", reference::mlp(x, w1, b1, w2, b2, form));
  const bool kept =
      takes_gradient(x) || takes_gradient(w1) || takes_gradient(b1) || takes_gradient(w2) || takes_gradient(b2);
  const int64_t in = x.size(-1), rows = x.numel() / in, hidden = w1.size(0), out = w2.size(0);
  const auto read = [&](const Tensor& t) { return detached::contiguous(detail::as_rows(t, x.dtype())); };
  const kernels::MlpWeights weights{read(w1), read(b1), read(w2), read(b2)};
  // With few rows, threads share the columns in separate products, but the rows in the fused kernel. If products are
  // our own (core/cpu/matmul.cpp), both give the same bits.
  if (!kept && rows < 16 && std::min(hidden, out) >= 8 && x.device().kind == DeviceKind::cpu && isa() != Isa::base)
    return reference::mlp(x, weights.w1, weights.b1, weights.w2, weights.b2, form);
  const bool tanh_form = form == GeluForm::tanh;
  const Tensor input = detached::reshape(detached::contiguous(x), {rows, in});
  Dims shape = x.shape();
  shape[shape.rank - 1] = out;
  Tensor y = empty(shape, x.options());
  const DType kept_as = rounds_activation(x.dtype(), rows * hidden) ? DType::bf16 : x.dtype();
  const Tensor h = kept ? empty({rows, hidden}, {kept_as, x.device()}) : Tensor();
  kernels::mlp_forward.on(x.device(), detached::reshape(y, {rows, out}), h, input, weights, tanh_form);
  if (auto* n = track("mlp", {&y}, {&x, &w1, &b1, &w2, &b2}))
    n->backward = differentiable([x = save_activation(input), before = h, w1 = save(weights.w1), w2 = save(weights.w2),
                                  tanh_form, shape = x.shape()](Flow& g) {
      if (g.needs_composition()) {
        const Tensor in = g.attached(0, detached::reshape(x.data(), shape)),
                     product = linear(in, g.attached(1, w1), g.attached(2));
        // The bias is not saved. The difference from the saved values restores it.
        const Tensor h = product + (detached::reshape(to(before, in.dtype()), product.shape()) - detach(product));
        return g.follow({linear(activated(h, tanh_form), g.attached(3, w2), g.attached(4))});
      }
      const kernels::MlpWeights weights{w1, {}, w2, {}};
      const Tensor dy = detached::reshape(detached::contiguous(g.out()), {before.size(0), weights.w2.size(0)}), in = x;
      const Tensor h = g.retained() ? detached::clone(before) : before;  // is written to below
      const bool rounded = h.dtype() != in.dtype();
      const bool apart = rounded || h.device().kind != DeviceKind::cpu;  // otherwise h becomes its gradient
      const Tensor dh = apart ? empty(h.shape(), in.options()) : h;
      const Tensor activated = apart && !rounded ? h : empty_like(dh), dx = g.wants(0) ? empty_like(in) : Tensor();
      kernels::mlp_backward.on(dy.device(), dx, dh, activated, apart ? h : Tensor(), dy, weights, tanh_form);
      if (dx.defined()) g.give(0, detached::reshape(dx, shape));
      detail::give_weight_gradient(g, 1, in, dh);
      detail::give_weight_gradient(g, 3, activated, dy);
    });
  return y;
}

}  // namespace isonorm
