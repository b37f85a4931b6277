// The arrangements by name: a new one is a file beside these, and stands here.
#pragma once

#include "nn/residual/dual.h"
#include "nn/residual/gpas.h"
#include "nn/residual/sub_ln.h"

namespace isonorm::nn {

inline constexpr Arrangement kArrangements[] = {kPreLn,        kPostLn,       kDeepNorm,         kSandwich, kSubLn,
                                                kResiDual,     kMixLn,        kLayerNormScaling, kPreGpas,  kLnsGpas,
                                                kSandwichGpas, kDeepPostGpas, kPostPreGpas};

}  // namespace isonorm::nn
