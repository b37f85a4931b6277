#include "nn/residual/post_norm.h"

namespace isonorm::nn {

PostNorm::PostNorm(const Stream& stream, StreamNormOptions o, PostPlace place)
    : StreamNorm(stream, o.keeping_gain()), place_(place) {
  constexpr const char* kWho = "connections with a norm behind the sum: ";
  check(row_of(stream.form()).normed(), kWho, "the stream is one of ", name_of(stream.form()), ", which has no norm");
  check(!stream.centres_readers(), kWho, "readers are centred, though not all rows that they read are");
}

Tensor PostNorm::read(Residual& r) { return r.settle(); }

const Connection* PostNorm::maps_readers() const { return place_.first || weight.defined() ? nullptr : this; }

Tensor PostNorm::shortcut(const Tensor& x) const {
  return place_.first || weight.defined() ? stream().map_writer(x, -1) : x;
}

void PostNorm::join(Residual& r, const Tensor& branch) {
  r.stream = add_normalize(shortcut(r.settle()), branch).normed;
  if (place_.last && weight.defined()) r.stream = stream().map_writer(r.stream, -1);
}

PostPlace post_place(const BlockPlace& place, int64_t i, bool last) {
  return {.first = place.index == 0 && i == 0, .last = last && i == place.sublayers() - 1};
}

std::unique_ptr<Connection> bare_last(const Stream& stream, const StreamNormOptions& o) {
  return std::make_unique<PostEnd>(stream, o.affine);
}

BlockConnections post_ln_block(const Stream& stream, const StreamNormOptions& norms, const BlockPlace& place) {
  return post_block<PostNorm>(stream, norms, place);
}

}  // namespace isonorm::nn
