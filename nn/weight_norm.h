// Weight normalization (Salimans & Kingma, 1602.07868): the length and the direction of each output's weights are
// separate parameters.
#pragma once

#include "core/tensor.h"

namespace isonorm::nn {

// gain[o] v[o] / |v[o]| for the weights v[o] of each output. v [out, ...] of a floating dtype, gain [out] -> shape and
// dtype of v; bf16 is computed in f32 and rounded once. Throws if gain does not fit. An output whose weights are all 0
// gives NaN.
Tensor weight_norm(const Tensor& v, const Tensor& gain);

// Sets gain and bias [out] of a layer so that each output of this batch has mean 0 and standard deviation 1. outputs
// [..., out] are the layer's outputs with gain 1 and bias 0: gain = 1 / deviation, bias = -mean / deviation (equation 5
// of the paper). An output with deviation 0 keeps its gain. Throws if there are no outputs or shapes do not fit.
void initialise_weight_norm(const Tensor& gain, const Tensor& bias, const Tensor& outputs);

}  // namespace isonorm::nn
