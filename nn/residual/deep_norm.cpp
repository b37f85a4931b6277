#include "nn/residual/deep_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
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

DeepNorm::DeepNorm(int64_t width, ConnectionOptions o, PostPlace place, double alpha)
    : PostNorm(width, o, place), alpha_(alpha) {}

Tensor DeepNorm::shortcut(const Tensor& x) const { return PostNorm::shortcut(x) * alpha_; }

BlockConnections deep_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("deepnorm", place);
  return post_block<DeepNorm>(width, norms, place, deep_norm_alpha(place));
}

}  // namespace isonorm::nn
