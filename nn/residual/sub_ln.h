// Sub-LN (Wang et al., Foundation Transformers, 2210.06423, figure 2): Pre-LN with a LayerNorm more in each branch, of
// the concatenated heads before attention's output and of the hidden entries before the MLP's second map. With N blocks,
// encoder or decoder alone, values, attention's output and the MLP begin with sqrt(ln 2N) times Xavier's distribution.
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

double sub_ln_gain(int64_t depth);
void initialise_sub_ln(const BlockWeights& weights, int64_t depth);

inline constexpr Arrangement kSubLn{.name = "sub_ln",
                                    .block = block_of<PreNorm>,
                                    .last = last_of<PreNorm>,
                                    .inner_norms = true,
                                    .initialise = initialise_sub_ln};

}  // namespace isonorm::nn
