#include "nn/residual/mix_ln.h"

namespace isonorm::nn {

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

}  // namespace isonorm::nn
