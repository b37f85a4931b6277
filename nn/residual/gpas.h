// GPAS (Chen et al., 2506.22049, section 3): the residual stream is scaled down, phi(x) = x - silu(a) sg(x), with one
// gate a per block, 0 at first, and the stop-gradient sg. Values are multiplied by 1 - silu(a), gradients are not. The
// gate's gradient is therefore -silu'(a) sum(g x), and the gradients here are not the derivatives of the function.
//   pre_gpas, lns_gpas, sandwich_gpas   x <- phi(x + ...), the sum of Pre-LN, LayerNorm Scaling and Sandwich-LN
//   deeppost_gpas                       x <- LayerNorm(alpha phi(x) + branch(x))
//   post_pre_gpas                       Mix-LN: x <- LayerNorm(phi(x) + branch(x)), then x <- phi(x + branch(norm(x)))
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

// The gates of a model's connections, [1] each. Empty if the arrangement has none.
std::vector<Tensor> gates(const Module& model);

BlockConnections pre_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
BlockConnections lns_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
BlockConnections sandwich_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
BlockConnections deeppost_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
BlockConnections post_pre_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kPreGpas{.name = "pre_gpas", .block = pre_gpas_block, .last = last_of<PreNorm>};
inline constexpr Arrangement kLnsGpas{.name = "lns_gpas", .block = lns_gpas_block, .last = last_of<PreNorm>};
inline constexpr Arrangement kSandwichGpas{
    .name = "sandwich_gpas", .block = sandwich_gpas_block, .last = last_of<PreNorm>};
inline constexpr Arrangement kDeepPostGpas{.name = "deeppost_gpas",
                                           .block = deeppost_gpas_block,
                                           .last = bare_last,
                                           .initialise = initialise_deep_norm,
                                           .reads_embeddings = true};
inline constexpr Arrangement kPostPreGpas{
    .name = "post_pre_gpas", .block = post_pre_gpas_block, .last = last_of<PreNorm>, .reads_embeddings = true};

}  // namespace isonorm::nn
