// Sub-LN (Wang et al., Foundation Transformers, 2210.06423, figure 2): Pre-LN with an additional LayerNorm in each
// branch: of the concatenated heads before self-attention's output map, and of the hidden entries before the MLP's
// second map. Values, attention's output and the MLP begin with Xavier's distribution times a gain:
//
//   encoder or decoder alone, N               sqrt(ln 2N)
//   encoder of N before a decoder of M        sqrt(ln(3M) ln(2N) / 3)
//   decoder of M                              sqrt(ln 3M), its cross-attention 1
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

double sub_ln_gain(const BlockPlace& place);
void initialise_sub_ln(const BlockWeights& weights, const BlockPlace& place);

inline constexpr Arrangement kSubLn{.name = "sub_ln",
                                    .block = block_of<PreNorm>,
                                    .last = last_of<PreNorm>,
                                    .inner_norms = true,
                                    .initialise = initialise_sub_ln};

}  // namespace isonorm::nn
