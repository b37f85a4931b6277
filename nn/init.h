// Initial values of parameters, f32 on the CPU, drawn from the default generator (see manual_seed). While a SkipInit of
// this thread lives (nn/modes.h) nothing is drawn, and the values are NaN.
#pragma once

#include "core/tensor.h"

namespace isonorm::nn::init {

Tensor uniform(const Dims& shape, double lo, double hi);
Tensor normal(const Dims& shape, double mean, double deviation);
// Normal, redrawn outside of two deviations (timm's trunc_normal, used for ViT).
Tensor truncated_normal(const Dims& shape, double deviation);
// [out, in]: uniform in +-gain sqrt(6/(in + out)), normal with deviation gain sqrt(2/(in + out)) (Glorot & Bengio
// 2010).
Tensor xavier_uniform(const Dims& shape, double gain = 1);
Tensor xavier_normal(const Dims& shape, double gain = 1);
// [out, in]: normal with deviation sqrt(2/in), for ReLU (He et al., 1502.01852).
Tensor kaiming_normal(const Dims& shape);
// [out, in]: orthonormal rows if out <= in, otherwise orthonormal columns, uniformly distributed (Saxe et al.,
// 1312.6120). Made by orthogonalizing a normal matrix.
Tensor orthogonal(const Dims& shape);

}  // namespace isonorm::nn::init
