#include "nn/norm.h"

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "nn/module_scope.h"
#include "nn/stream_watch.h"

namespace isonorm::nn {

Norm::Norm(int64_t width, const NormSpec& spec, NormLayerOptions o)
    : weight(add_parameter("weight", o.affine && spec.kind != NormKind::none ? ones({width}) : Tensor())),
      bias(add_parameter("bias", weight.defined() && o.bias ? zeros({width}) : Tensor())),
      width_(width),
      spec_(spec),
      options_(o),
      own_kind_(spec.kind) {
  check(width > 0, "norm: width ", width, " must be positive");
}

namespace {

// Throws unless the rows have the norm's width, or one entry less on a stream that stores one entry less.
void check_width(const Norm& norm, const Tensor& x) {
  const NormKind kind = norm.spec().kind;
  const bool compressed = norm.of_stream() && (kind == NormKind::crms || kind == NormKind::crms_isometric);
  const int64_t width = norm.width() - compressed;
  check((norm.of_stream() && kind == NormKind::none) || x.size(-1) == width, "norm: rows of shape ", x.shape(),
        ", its width is ", width);
}

}  // namespace

Tensor Norm::gain(const Tensor& x) const {
  const Tensor w = weight();
  if (factor_ == 1) return w;
  return w.defined() ? w * factor_ : full({x.size(-1)}, factor_, x.options());
}

Tensor Norm::offset() const {
  const Tensor b = bias();
  return b.defined() && factor_ != 1 ? b * factor_ : b;
}

Tensor Norm::operator()(Residual& x, std::optional<DType> as) const {
  if (!x.pending.defined()) return normalize(x.stream, as);
  const auto [sum, rows] = add_normalize(x.stream, x.pending, as);
  x.stream = sum, x.pending = {};
  return rows;
}

Tensor Norm::normalize(const Tensor& x, std::optional<DType> as) const {
  const ModuleScope scope(*this);
  check_width(*this, x);
  if (of_stream_) StreamWatch::show(*this, x);
  const Tensor rows = isonorm::normalize(x, spec_, gain(x), offset(), as);
  return after_ ? after_(rows) : rows;
}

AddNorm Norm::add_normalize(const Tensor& x, const Tensor& branch, std::optional<DType> as) const {
  const ModuleScope scope(*this);
  check_width(*this, x);
  AddNorm r = add_norm(x, branch, spec_, gain(x), offset(), as);
  if (of_stream_) StreamWatch::show(*this, r.sum);
  if (after_) r.normed = after_(r.normed);
  return r;
}

void Norm::compute_as(NormKind kind, Rows after) {
  spec_.kind = kind;
  of_stream_ = true;
  after_ = std::move(after);
}

void Norm::compute_as_own() {
  spec_.kind = own_kind_;
  of_stream_ = false;
  after_ = {};
}

}  // namespace isonorm::nn
