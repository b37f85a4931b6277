#include "nn/norm.h"

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "nn/module_scope.h"
#include "nn/stream_watch.h"

namespace isonorm::nn {

LayerNorm::LayerNorm(int64_t width, NormLayerOptions o) : eps_(o.eps) {
  if (!o.affine) return;
  weight = add_parameter("weight", ones({width}));
  if (o.bias) bias = add_parameter("bias", zeros({width}));
}

Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, weight(), bias(), {.eps = eps_}); }

RmsNorm::RmsNorm(int64_t width, NormLayerOptions o) : eps_(o.eps) {
  if (o.affine) weight = add_parameter("weight", ones({width}));
}

Tensor RmsNorm::forward(const Tensor& x) { return rms_norm(x, weight(), {}, {.eps = eps_}); }

StreamNorm::StreamNorm(const Stream& stream, StreamNormOptions o)
    : Connection(stream),
      spec_{.kind = o.normalize ? row_of(stream.form()).norm : NormKind::none, .eps = o.eps},
      keeps_gain_(o.keeps_gain) {
  if (!o.affine || !o.normalize || (o.folded && !o.keeps_gain)) return;
  check(o.keeps_gain || stream.parameter_width() == stream.width(), "norm: a learned gain has ", stream.width(),
        " entries, the compressed parameters of a ", name_of(stream.form()), " stream hold ", stream.parameter_width(),
        "; use raw storage");
  check(o.keeps_gain || stream.storage() == StreamStorage::raw || !stream.centres_readers(),
        "norm: a learned gain moves the direction that centred readers do not see; use raw storage");
  weight = add_parameter("weight", ones({stream.width()}));
  if (o.bias) bias = add_parameter("bias", zeros({stream.width()}));
}

bool StreamNorm::hands_over() const {
  return weight.defined() && !keeps_gain_ &&
         (stream().stored_width() != stream().width() || stream().centres_readers());
}

bool StreamNorm::apart() const {
  return hands_over() || (weight.defined() && stream().stored_width() != stream().width());
}

// A gain that is kept acts on d entries; in forms that store so many it is the norm's own.
Tensor StreamNorm::with_gain(const Tensor& rows) const {
  if (!keeps_gain_ || !apart()) return rows;
  const auto wide = [&](const Tensor& x) { return rows.dtype() == DType::bf16 ? cast(x, DType::f32) : x; };
  const Tensor gained = wide(stream().expand(rows)) * wide(weight);
  return cast(bias.defined() ? gained + wide(bias) : gained, rows.dtype());
}

Tensor StreamNorm::normalize(const Tensor& x, std::optional<DType> as) const {
  const ModuleScope scope(*this);
  StreamWatch::show(*this, x);
  return with_gain(isonorm::normalize(x, spec_, gain(), offset(), as));
}

AddNorm StreamNorm::add_normalize(const Tensor& x, const Tensor& branch, std::optional<DType> as) const {
  const ModuleScope scope(*this);
  AddNorm r = add_norm(x, branch, spec_, gain(), offset(), as);
  StreamWatch::show(*this, r.sum);
  r.normed = with_gain(r.normed);
  return r;
}

// A (gain n + bias) + b = (A diag(gain)) n + (b + A bias), bf16 in f32 and rounded once.
Tensor StreamNorm::reader_weight(const Tensor& reader) const {
  if (!hands_over()) return Connection::reader_weight(reader);
  const auto wide = [&](const Tensor& x) { return reader.dtype() == DType::bf16 ? cast(x, DType::f32) : x; };
  return cast(stream().read(wide(reader) * wide(weight)), reader.dtype());
}

Tensor StreamNorm::reader_bias(const Tensor& reader, const Tensor& reader_bias) const {
  if (!hands_over() || !bias.defined()) return reader_bias;
  const auto wide = [&](const Tensor& x) { return reader.dtype() == DType::bf16 ? cast(x, DType::f32) : x; };
  const Tensor shift = matmul(wide(reader), wide(bias));
  return cast(reader_bias.defined() ? wide(reader_bias) + shift : shift, reader.dtype());
}

}  // namespace isonorm::nn
