// The steps of the workshop (docs/workshop.md): LayerNorm of rows with gain and bias and its gradient, rewritten until
// it is the library's kernel. All steps have the signatures of its kernel slots (core/kernels/norm.h).
//
// Forward, for each row x of width d (Ba et al., 1607.06450; eps as everybody adds it since):
//   mean = sum(x) / d,   r = sqrt(sum((x - mean)^2) / d + eps),   x^ = (x - mean) / r,   y = x^ gain + bias
// Backward, from its Jacobian (docs/normalization.md), with h = dy gain:
//   dx = (h - mean(h) - x^ mean(h x^)) / r,   dgain = sum over the rows of dy x^,   dbias = sum over the rows of dy
#pragma once

#include <span>

#include "core/kernels/norm.h"

namespace isonorm::workshop {

using kernels::NormGradients;
using kernels::NormInputs;
using kernels::NormOutputs;
using kernels::NormSaved;
using Forward = Kernel<void(const NormSpec&, const NormOutputs&, const NormInputs&)>;
using Backward = Kernel<void(const NormSpec&, const NormGradients&, const NormSaved&)>;

struct Step {
  const char* name;
  Forward forward;
  Backward backward;
};
std::span<const Step> steps();

namespace formula {
void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace formula

namespace rows {
void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace rows

// From here on compiled once per instruction set.
namespace sums {
template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace sums

namespace lanes {
template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace lanes

namespace threads {
template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace threads

namespace memory {
template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace memory

}  // namespace isonorm::workshop
