#include "nn/residual/mix_ln.h"

namespace isonorm::nn {

int64_t mix_ln_posts(const char* name, int64_t depth) {
  check(depth >= 4, name, ": of ", depth, " blocks a quarter is none, expected at least 4");
  return depth / 4;
}

BlockConnections mix_ln_block(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  check_place("mix_ln", index, depth);
  const int64_t posts = mix_ln_posts("mix_ln", depth);
  if (index >= posts) return block_of<PreNorm>(stream, norms, index, depth);
  const auto [attention, mlp] = post_places(index, index == posts - 1);
  return {std::make_unique<PostNorm>(stream, norms, attention), std::make_unique<PostNorm>(stream, norms, mlp)};
}

}  // namespace isonorm::nn
