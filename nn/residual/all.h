// List of the arrangements. A new one gets a file in this folder and an entry here.
#pragma once

#include "nn/residual/dual.h"
#include "nn/residual/gpas.h"
#include "nn/residual/sub_ln.h"

namespace isonorm::nn {

inline constexpr Arrangement kArrangements[] = {kPreLn,        kPostLn,       kDeepNorm,         kSandwich, kSubLn,
                                                kResiDual,     kMixLn,        kLayerNormScaling, kPreGpas,  kLnsGpas,
                                                kSandwichGpas, kDeepPostGpas, kPostPreGpas};

}  // namespace isonorm::nn
