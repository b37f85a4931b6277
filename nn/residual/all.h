// List of the arrangements.
#pragma once

#include "nn/residual/gpas.h"

namespace isonorm::nn {

inline constexpr Arrangement kArrangements[] = {kPreLn,        kPostLn,       kDeepNorm,         kSandwich, kSubLn,
                                                kResiDual,     kMixLn,        kLayerNormScaling, kPreGpas,  kLnsGpas,
                                                kSandwichGpas, kDeepPostGpas, kPostPreGpas};

}  // namespace isonorm::nn
