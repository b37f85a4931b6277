#include "nn/residual/post_norm.h"

namespace isonorm::nn {

PostNorm::PostNorm(const Stream& stream, StreamNormOptions o) : StreamNorm(stream, o) {
  check(stream.form() == StreamForm::layer_norm && !stream.centres_readers(), "post_norm: the stream is one of ",
        name_of(stream.form()), stream.centres_readers() ? " with centred readers" : "",
        ", expected layer_norm: the other forms are those of pre_norm");
}

Tensor PostNorm::read(Residual& r) { return r.settle(); }

void PostNorm::join(Residual& r, const Tensor& branch) { r.stream = add_normalize(r.settle(), branch).normed; }

std::unique_ptr<Connection> bare_last(const Stream& stream, const StreamNormOptions&) {
  return std::make_unique<PreNorm>(stream, StreamNormOptions{.normalize = false});
}

}  // namespace isonorm::nn
