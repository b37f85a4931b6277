#include "nn/residual/post_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

PostNorm::PostNorm(int64_t width, ConnectionOptions o, PostPlace place, double alpha)
    : Connection(width, o.not_foldable()), place_(place), alpha_(alpha) {
  check(o.kind != NormKind::none, "post-normalised connections need a norm, the norm is none");
}

Tensor PostNorm::read(Residual& r) { return r.settle(); }

bool PostNorm::reads_residual() const { return !place_.first && !weight.defined(); }

Tensor PostNorm::shortcut(const Tensor& x) const {
  const Tensor rows = reads_residual() ? x : projected(x);
  return alpha_ == 1 ? rows : rows * alpha_;
}

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

int64_t mix_ln_posts(const char* name, int64_t depth) {
  check(depth >= 4, name, ": a quarter of ", depth, " blocks is none, expected at least 4");
  return depth / 4;
}

BlockConnections mix_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("mix_ln", place);
  const int64_t posts = mix_ln_posts("mix_ln", place.depth);
  if (place.index >= posts) return block_of<PreNorm>(width, norms, place);
  return each_sublayer(place, [&](int64_t i) {
    return std::make_unique<PostNorm>(width, norms, post_place(place, i, place.index == posts - 1));
  });
}

namespace {

// The values of a formula for the three kinds of stack. `encoder` depends on the depths of both stacks.
struct Constants {
  double alone, encoder, decoder;
};
double of(const Constants& c, Stack stack) {
  return stack == Stack::alone ? c.alone : stack == Stack::encoder ? c.encoder : c.decoder;
}
// N^4 M, if the other stack is the decoder.
double both(const BlockPlace& p) {
  return std::pow(static_cast<double>(p.depth), 4) * static_cast<double>(p.other_depth);
}

}  // namespace

double deep_norm_alpha(const BlockPlace& p) {
  const auto n = static_cast<double>(p.depth);
  return of({std::pow(2 * n, 0.25), 0.81 * std::pow(both(p), 1.0 / 16), std::pow(3 * n, 0.25)}, p.stack);
}

double deep_norm_beta(const BlockPlace& p) {
  const auto n = static_cast<double>(p.depth);
  return of({std::pow(8 * n, -0.25), 0.87 * std::pow(both(p), -1.0 / 16), std::pow(12 * n, -0.25)}, p.stack);
}

void initialise_deep_norm(const BlockWeights& w, const BlockPlace& p) {
  initialise_scaled(w, deep_norm_beta(p), deep_norm_beta(p));
}

BlockConnections deep_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("deepnorm", place);
  return post_block<PostNorm>(width, norms, place, deep_norm_alpha(place));
}

void DualNorm::join(Residual& r, const Tensor& branch) {
  if (!r.dual.defined()) r.dual = shortcut(r.settle());
  r.dual = r.dual + branch.to(r.dual.dtype());
  PostNorm::join(r, branch);
}

BlockConnections residual_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return post_block<DualNorm>(width, norms, place);
}

namespace {

constexpr double kDualEps = 1e-7;  // of the last norm, which normalizes a sum of many branches

ConnectionOptions dual_last(ConnectionOptions o) {
  check(o.kind != NormKind::none || !o.affine, "residual: with affine norms the last norm cannot be left out");
  o.eps = kDualEps;
  return o.not_foldable();
}

}  // namespace

DualEnd::DualEnd(int64_t width, ConnectionOptions o) : PreNorm(width, dual_last(o)) {}

Tensor DualEnd::read(Residual& r) {
  check(r.dual.defined(), "residual: no connection before the last one has begun the second residual stream");
  return (*this)(r.dual) + r.settle();
}

}  // namespace isonorm::nn
