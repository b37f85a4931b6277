#include "nn/residual/dual.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

constexpr double kEps = 1e-7;  // of the last norm, which normalizes a sum of many branches

ConnectionOptions last(ConnectionOptions o) {
  check(o.kind != NormKind::none || !o.affine, "residual: with affine norms the last norm cannot be left out");
  o.eps = kEps;
  return o.not_foldable();
}

}  // namespace

void DualNorm::join(Residual& r, const Tensor& branch) {
  if (!r.dual.defined()) r.dual = shortcut(r.settle());
  r.dual = r.dual + branch.to(r.dual.dtype());
  PostNorm::join(r, branch);
}

BlockConnections residual_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return post_block<DualNorm>(width, norms, place);
}

DualEnd::DualEnd(int64_t width, ConnectionOptions o) : PreNorm(width, last(o)) {}

Tensor DualEnd::read(Residual& r) {
  check(r.dual.defined(), "residual: no connection before the last one has begun the second residual stream");
  return (*this)(r.dual) + r.settle();
}

}  // namespace isonorm::nn
