#include "nn/residual/post_norm.h"

namespace isonorm::nn {

PostNorm::PostNorm(int64_t width, ConnectionOptions o, PostPlace place)
    : Connection(width, o.not_foldable()), place_(place) {
  check(o.kind != NormKind::none, "post-normalised connections need a norm, the norm is none");
}

Tensor PostNorm::read(Residual& r) { return r.settle(); }

bool PostNorm::reads_residual() const { return !place_.first && !weight.defined(); }

Tensor PostNorm::shortcut(const Tensor& x) const { return reads_residual() ? x : projected(x); }

void PostNorm::join(Residual& r, const Tensor& branch) {
  Residual both{shortcut(r.settle()), branch};
  r.sum = (*this)(both);
  if (place_.last && weight.defined()) r.sum = projected(r.sum);
}

PostPlace post_place(const BlockPlace& place, int64_t i, bool last) {
  return {.first = place.index == 0 && i == 0, .last = last && i == place.sublayers() - 1};
}

std::unique_ptr<Connection> bare_last(int64_t width, const ConnectionOptions& o) {
  return std::make_unique<PostEnd>(width, o);
}

BlockConnections post_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return post_block<PostNorm>(width, norms, place);
}

}  // namespace isonorm::nn
