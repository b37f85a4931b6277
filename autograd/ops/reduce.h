// Reductions over chosen dimensions. Empty `dims` means all; keepdim leaves reduced dimensions with size 1. All throw
// if a dimension does not exist or is given twice. Tensors of any dtype, but mean, var, std, norm, logsumexp and
// recentre take only floating ones. Sums and products of i64 and u8 are i64, modulo 2^64; extrema have x's dtype.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace isonorm {

// Sum; 0 over nothing. The same bits for any number of threads.
Tensor sum(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// sum / number of elements; NaN over nothing.
Tensor mean(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// Product; 1 over nothing. The gradient of an entry is the product of the other entries, also if the entry is 0.
Tensor prod(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// Largest and smallest; the gradient is shared equally among ties. Throw over nothing, unless the result is empty, too.
Tensor amax(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// Sum of squared deviations from the mean / max(0, n - correction): infinite or NaN if n is at most `correction`.
// Computed in f32 for bf16. The deviations' own mean is subtracted too, so that rounding of the mean does not matter.
Tensor var(const Tensor& x, std::vector<int> dims = {}, double correction = 1, bool keepdim = false);
// Square root of var(); if it is 0, so is its gradient. Under `using namespace isonorm` write x.std() or
// isonorm::std(x), because plain std is the namespace.
Tensor std(const Tensor& x, std::vector<int> dims = {}, double correction = 1, bool keepdim = false);
// Euclidean norm; the gradient at the zero vector is 0.
Tensor norm(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// ln of the sum of exponentials, shifted by the maximum so that it does not overflow; -inf over nothing.
Tensor logsumexp(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
// Running sum along one dimension.
Tensor cumsum(const Tensor& x, int dim);
// x minus its mean along one dimension, P x with P = I - 11^T/n; its gradient is P dy.
Tensor recentre(const Tensor& x, int dim);
// Position (i64) of the first largest element along one dimension; not differentiable. Throws over nothing.
Tensor argmax(const Tensor& x, int dim = -1, bool keepdim = false);
// Position (i64) of the first smallest element; NaN counts as smallest. Otherwise like argmax().
Tensor argmin(const Tensor& x, int dim = -1, bool keepdim = false);
// 1 (u8) if an element, or every element, is not 0 (NaN is not 0); over nothing 0 and 1. Not differentiable.
Tensor any(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, std::vector<int> dims = {}, bool keepdim = false);

// True if isclose() holds everywhere (autograd/ops/pointwise.h). Waits for a device.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// True if a and b have one dtype, one shape and equal elements; NaN equals nothing. Waits for a device.
bool equal(const Tensor& a, const Tensor& b);

}  // namespace isonorm
