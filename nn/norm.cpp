#include "nn/norm.h"

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "nn/module_scope.h"

namespace isonorm::nn {

Norm::Norm(int64_t width, const NormSpec& spec, NormLayerOptions o)
    : weight(add_parameter("weight", o.affine && spec.kind != NormKind::none ? ones({width}) : Tensor())),
      bias(add_parameter("bias", weight.defined() && o.bias ? zeros({width}) : Tensor())),
      width_(width),
      spec_(spec),
      options_(o),
      kind_(spec.kind) {
  check(width > 0, "norm: width ", width, " must be positive");
}

Tensor Norm::forward(const Tensor& x) {
  check_width(x);
  return normalize(x, spec_, gain(x), offset());
}

Tensor Norm::operator()(Residual& x, std::optional<DType> as) const {
  const ModuleScope scope(*this);
  check_width(x.sum);
  const bool separate = hooks() && !hooks()->backward.empty();  // the gradient of this norm's input has to be seen
  if (!x.pending.defined() || separate)
    return with_hooks(x.settle(), [&](const Tensor& rows) { return normalize(rows, spec_, gain(rows), offset(), as); });
  auto [sum, normed] = add_norm(x.sum, x.pending, spec_, gain(x.sum), offset(), as);
  x.sum = sum, x.pending = {};
  return hooks() ? hooks()->after_forward(*this, sum, normed) : normed;
}

void Norm::check_width(const Tensor& x) const {
  const int64_t width = width_ - (is_compressed(spec_.kind) && !is_compressed(kind_));
  check(kind_ == NormKind::none || x.size(-1) == width, "norm: rows of shape ", x.shape(), ", its width is ", width);
}

Tensor Norm::gain(const Tensor& x) const {
  const Tensor w = weight();
  if (options_.factor == 1) return w;
  return w.defined() ? w * options_.factor : full({x.size(-1)}, options_.factor, x.options());
}

Tensor Norm::offset() const {
  const Tensor b = bias();
  return b.defined() && options_.factor != 1 ? b * options_.factor : b;
}

}  // namespace isonorm::nn
