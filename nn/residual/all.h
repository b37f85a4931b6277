// The arrangements by name: a new one is a file beside these, and stands here.
#pragma once

#include "nn/residual/post_norm.h"

namespace isonorm::nn {

inline constexpr Arrangement kArrangements[] = {kPreNorm, kPostNorm};

}  // namespace isonorm::nn
