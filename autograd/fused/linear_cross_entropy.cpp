#include "autograd/fused/linear_cross_entropy.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shared.h"
#include "autograd/rounded_masters.h"
#include "core/kernels/loss.h"
#include "core/kernels/matmul.h"
#include "core/view.h"

namespace isonorm {
namespace {

// Logits of a chunk: on the CPU 16 MiB in f32; on a device enough to fill it with products, 512 MiB in bf16. With fewer
// rows, moving the weight's gradient through memory would cost more than the products.
int64_t chunk_of(Device device) { return int64_t{1} << (device.kind == DeviceKind::cpu ? 22 : 28); }
constexpr int64_t kFewestRows = 128;

// An input that only second derivatives read again. The rule holds it weakly, so the forward saves nothing more.
class WeakInput {
 public:
  WeakInput(const char* name, const Tensor& x) : name_(name) {
    if (!x.defined()) return;
    tensor_ = x.handle(), storage_ = x.impl().storage.get(), version_ = storage_->version();
  }
  // The input; undefined if it was. Throws if nothing else holds it any more or if it was changed.
  Tensor get() const {
    if (!storage_) return {};
    const std::shared_ptr<TensorImpl> x = tensor_.lock();
    check(x != nullptr, "it has no second derivative (create_graph) without its ", name_,
          ", which nothing holds any more; keep the tensor until the backward");
    check(x->storage.get() == storage_ && storage_->version() == version_, "its ", name_, ' ', x->shape,
          ", which the second derivative needs, was changed after the forward");
    return Tensor(x);
  }

 private:
  const char* name_;
  std::weak_ptr<TensorImpl> tensor_;
  const Storage* storage_ = nullptr;  // null: the input is undefined
  uint32_t version_ = 0;
};

}  // namespace

Tensor reference::linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                                       const CrossEntropyOptions& options) {
  return cross_entropy(to(linear(x, weight, bias), weight.dtype()), target, options);
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
                            const CrossEntropyOptions& o) {
  check_same_device("linear_cross_entropy", x, weight, bias, target);
  check(x.rank() >= 1 && weight.rank() == 2 && x.size(-1) == weight.size(1) &&
            detail::fits_rows(weight.dtype(), x.dtype()),
        "linear_cross_entropy: input ", x.dtype(), ' ', x.shape(), " does not fit weight ", weight.dtype(), ' ',
        weight.shape());
  check(is_floating(x.dtype()) && weight.size(0) > 0, "linear_cross_entropy: weight is ", weight.dtype(), ' ',
        weight.shape(), ", expected a floating one, [classes, width]");
  const int64_t n = target.numel(), width = weight.size(1), classes = weight.size(0);
  if (bias.defined())
    check(bias.shape() == Dims{classes} && bias.dtype() == weight.dtype(), "linear_cross_entropy: bias ", bias.dtype(),
          ' ', bias.shape(), " does not fit weight ", weight.dtype(), ' ', weight.shape());
  Dims leading = x.shape();
  --leading.rank;
  check(target.shape() == leading, "linear_cross_entropy: targets ", target.shape(), " do not fit input ", x.shape());
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, "linear_cross_entropy: label smoothing ", o.label_smoothing,
        " is outside of [0, 1]");
  const Tensor id = detached::reshape(
      detail::checked_ids(target, classes, "linear_cross_entropy", "the classes", o.ignore_index), {n});
  if (use_reference() || o.reduction == Reduction::none || o.weight.defined())
    return reference::linear_cross_entropy(x, weight, bias, target, o);
  const Device device = x.device();
  const TensorOptions acc{acc_dtype(x.dtype()), device};
  const TensorOptions products{kernels::bf16_products(device) ? x.dtype() : acc.dtype,
                               device};  // of the products' operands and results
  const auto computed_in = [&](const Tensor& t) {
    return detached::to(detached::contiguous(detail::as_rows(t, x.dtype())), products.dtype);
  };
  const Tensor input = detached::reshape(computed_in(x), {n, width}), w = computed_in(weight),
               shift = computed_in(bias);
  const Tensor w_transposed = detached::transpose(w, 0, 1);
  const kernels::CrossEntropySpec spec{o.ignore_index, o.label_smoothing};
  Tensor dx, dw, db;
  if (takes_gradient(x)) dx = empty({n, width}, products);
  if (takes_gradient(weight)) dw = n > 0 ? empty({classes, width}, acc) : zeros({classes, width}, acc);
  if (takes_gradient(bias)) db = n > 0 ? empty({classes}, acc) : zeros({classes}, acc);

  const Tensor losses = empty({n}, acc), scale = empty({1}, acc), out = empty({}, {weight.dtype(), device});
  kernels::cross_entropy_scale.on(device, scale, id, o.ignore_index, o.reduction == Reduction::mean);
  const int64_t chunk = std::min(n, std::max(kFewestRows, chunk_of(device) / classes));
  const bool gradient = dx.defined() || dw.defined() || db.defined();
  const Tensor buffer = empty({chunk, classes}, products), stats = gradient ? Tensor() : empty({chunk, 2}, acc);
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t count = std::min(chunk, n - begin);
    const auto rows = [&](const Tensor& t) { return detached::narrow(t, 0, begin, count); };
    const Tensor logits = detached::narrow(buffer, 0, 0, count), part = rows(input), ids = rows(id);
    kernels::matmul.on(device, logits, part, w_transposed, shift);
    if (!gradient) {
      kernels::cross_entropy.on(device, rows(losses), stats, logits, ids, spec);
      continue;
    }
    kernels::cross_entropy_and_gradient.on(device, rows(losses), logits, detached::expand(scale, {count}), logits, ids,
                                           spec);
    if (dx.defined()) kernels::matmul.on(device, rows(dx), logits, w, {});
    if (dw.defined() || db.defined()) kernels::weight_gradient.on(device, dw, db, logits, part, begin > 0);
  }
  kernels::cross_entropy_total.on(device, out, losses, scale);

  if (auto* node = track("linear_cross_entropy", {&out}, {&x, &weight, &bias}))
    node->backward = differentiable([input = WeakInput("x", x), weight = WeakInput("weight", weight),
                                     bias = WeakInput("bias", bias), target = save(target), o, shape = x.shape(),
                                     gradients = std::vector<Tensor>{dx, dw, db}](Flow& g) mutable {
      if (g.needs_composition())
        return g.follow({reference::linear_cross_entropy(g.attached(0, input.get()), g.attached(1, weight.get()),
                                                         g.attached(2, bias.get()), target, o)});
      for (int i = 0; i < 3; ++i) {
        Tensor d = g.retained() ? gradients[i] : std::move(gradients[i]);
        if (!d.defined()) continue;
        if (!g.out_is_one()) d = mul(d, to(g.out(), d.dtype()));
        g.give(i, i == 0 ? detached::reshape(d, shape) : d);
      }
    });
  return out;
}

}  // namespace isonorm
