#include "nn/residual/deep_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

double deep_norm_alpha(int64_t depth) { return std::pow(2.0 * static_cast<double>(depth), 0.25); }
double deep_norm_beta(int64_t depth) { return std::pow(8.0 * static_cast<double>(depth), -0.25); }
void initialise_deep_norm(const BlockWeights& w, int64_t depth) { initialise_scaled(w, deep_norm_beta(depth)); }

DeepNorm::DeepNorm(const Stream& stream, StreamNormOptions o, PostPlace place, int64_t depth)
    : PostNorm(stream, o, place), alpha_(deep_norm_alpha(depth)) {}

Tensor DeepNorm::shortcut(const Tensor& x) const { return PostNorm::shortcut(x) * alpha_; }

BlockConnections deep_norm_block(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  check_place("deepnorm", index, depth);
  return post_block<DeepNorm>(stream, norms, index, depth);
}

}  // namespace isonorm::nn
