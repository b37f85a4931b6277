// Weight normalization (Salimans & Kingma, 1602.07868): length and direction of an output's weights as separate
// parameters.
#pragma once

#include "core/tensor.h"

namespace isonorm::nn {

// gain[o] v[o] / |v[o]| for the weights v[o] of each output. v [out, ...] of a floating dtype, gain [out] -> v's shape and
// dtype; bf16 is computed in f32 and rounded once. Throws where gain does not fit. An output whose weights are all 0 gives
// NaN.
Tensor weight_norm(const Tensor& v, const Tensor& gain);

// Sets gain and bias [out] of a layer so that each output of this batch has mean 0 and standard deviation 1, given what
// the layer with gain 1 and bias 0 gives: gain = 1 / deviation, bias = -mean / deviation (equation 5 there). outputs
// [..., out]. An output without deviation keeps its gain. Throws where there are no outputs or shapes do not fit.
void initialise_weight_norm(const Tensor& gain, const Tensor& bias, const Tensor& outputs);

}  // namespace isonorm::nn
