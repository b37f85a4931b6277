#include "nn/norm.h"

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "nn/stream_watch.h"

namespace isonorm::nn {

LayerNorm::LayerNorm(int64_t width, NormLayerOptions o) : eps_(o.eps) {
  if (!o.affine) return;
  weight = add_parameter("weight", ones({width}));
  bias = add_parameter("bias", zeros({width}));
}

Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, weight, bias, {.eps = eps_}); }

RmsNorm::RmsNorm(int64_t width, NormLayerOptions o) : eps_(o.eps) {
  if (o.affine) weight = add_parameter("weight", ones({width}));
}

Tensor RmsNorm::forward(const Tensor& x) { return rms_norm(x, weight, {}, {.eps = eps_}); }

Tensor Residual::settled() const { return pending.defined() ? stream + pending : stream; }

StreamNorm::StreamNorm(const Stream& stream, StreamNormOptions o)
    : stream_(stream), spec_{.kind = o.normalize ? row_of(stream.form()).norm : NormKind::none, .eps = o.eps} {
  if (!o.affine) return;
  check(stream.parameter_width() == stream.width(), "norm: a learned gain has ", stream.width(),
        " entries, the compressed parameters of a ", name_of(stream.form()), " stream hold ", stream.parameter_width(),
        "; use raw storage");
  check(stream.storage() == StreamStorage::raw || !stream.centres_readers(),
        "norm: a learned gain moves the direction that centred readers do not see; use raw storage");
  weight = add_parameter("weight", ones({stream.width()}));
  bias = add_parameter("bias", zeros({stream.width()}));
}

bool StreamNorm::hands_over() const {
  return weight.defined() && (stream_.stored_width() != stream_.width() || stream_.centres_readers());
}

Tensor StreamNorm::operator()(Residual& r) {
  Scope scope(name());
  const Tensor gain = hands_over() ? Tensor() : weight, offset = hands_over() ? Tensor() : bias;
  if (!r.pending.defined()) {
    StreamWatch::show(*this, r.stream);
    return normalize(r.stream, spec_, gain, offset);
  }
  auto [sum, rows] = add_norm(r.stream, r.pending, spec_, gain, offset);
  r = {sum, {}};
  StreamWatch::show(*this, r.stream);
  return rows;
}

Mapped StreamNorm::folded(const Tensor& reader, const Tensor& reader_bias) const {
  if (!hands_over()) return {stream_.read(reader), reader_bias};
  const DType dtype = reader.dtype();
  const auto wide = [&](const Tensor& x) { return dtype == DType::bf16 ? cast(x, DType::f32) : x; };
  // A (gain n + bias) + b = (A diag(gain)) n + (b + A bias)
  const Tensor a = wide(reader), shift = matmul(a, wide(bias));
  return {cast(stream_.read(a * wide(weight)), dtype),
          cast(reader_bias.defined() ? wide(reader_bias) + shift : shift, dtype)};
}

}  // namespace isonorm::nn
