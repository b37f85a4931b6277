// Lab 7: connections. 5 hours.
//
// Goal: write the sub-layers of five Transformers, and see what depth does to the gradients of each.
// Read: docs/connections.md, "The formulas" and "Measurements".
// Do:   7_connections.cpp. Write predicted_rest() before you look at gradient_norms() for 32 blocks; the marks are for
//       the final answer, the guess is for you.
// Hand in: 7_connections.cpp.
//
// Blocks are counted l = 1 ... L, each has two sub-layers. N is LayerNorm without gain and bias, eps 1e-5.
#pragma once

#include <functional>
#include <vector>

#include "support/library.h"

namespace course {

using isonorm::Tensor;
using Branch = std::function<Tensor(const Tensor& rows)>;

enum class Kind { pre_ln, post_ln, deepnorm, sandwich, layer_norm_scaling };

// DeepNorm's constant (2L)^(1/4) for a stack of L blocks (2203.00555).
double alpha(int64_t blocks);

// The stream x after a sub-layer of block l of L with the branch F:
//   pre_ln  x + F(N x)              post_ln             N(x + F x)
//   deepnorm  N(alpha x + F x)      sandwich            x + N(F(N x))
//   layer_norm_scaling  x + F(N x / sqrt(l))
Tensor sublayer(Kind kind, const Tensor& x, const Branch& f, int64_t l, int64_t blocks);

// The rows that the head reads: the stream itself for post_ln and deepnorm, N of the stream for the others.
Tensor head_rows(Kind kind, const Tensor& x);

// A stack of sub-layers; sub-layer i = 0, 1, ... has the branch rows -> tanh(rows weights[i]^T). The last dimension of
// x is the width.
Tensor stack_of(Kind kind, const Tensor& x, const std::vector<Tensor>& weights);

// |d <c, head_rows> / d weights[i]| (Frobenius) for every i.
std::vector<double> gradient_norms(Kind kind, const Tensor& x, const std::vector<Tensor>& weights, const Tensor& c);

// The gradient norm of the last sub-layer in a stack of 32 blocks, divided by its gradient norm in a stack of 2, for
// weights N(0, 1 / width). An answer within a factor of 1.6 gets full marks. How does the norm before the head change a
// gradient if the stream has grown with the blocks?
double predicted_rest(Kind kind);

}  // namespace course
