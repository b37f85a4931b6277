// Mix-LN (Li et al., 2412.13795, section 3): Post-LN in the first quarter of the blocks, rounded down, Pre-LN in the
// others, and a norm before the head.
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

// The number of post-normalised blocks. Throws, naming `name`, if it is 0: that would be Pre-LN.
int64_t mix_ln_posts(const char* name, int64_t depth);
BlockConnections mix_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kMixLn{
    .name = "mix_ln", .block = mix_ln_block, .last = last_of<PreNorm>, .reads_embeddings = true};

}  // namespace isonorm::nn
