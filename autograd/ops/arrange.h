// Functions that move elements: joining, flipping, padding, tiling, masking triangles. The result is a new tensor. All
// are differentiable for floating tensors and take any dtype. Dimensions count from the end where negative; a wrong one
// throws "op: dimension 5 is out of range for rank 3".
#pragma once

#include <utility>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

Tensor cat(const std::vector<Tensor>& parts, int dim = 0);    // along dim
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);  // along a new dimension
// Joins sequences [length_i, ...], which have one dtype and agree in all later dimensions, and fills each up with
// `value` at its end. Gives [sequences, longest, ...], the layout of nn::Lstm, or [longest, sequences, ...] (PyTorch's
// default) if not batch_first. The mask of the steps that count, [sequences, longest]: arange(longest) <
// lengths.unsqueeze(1). Throws if there are none.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = true, Scalar value = 0);
Tensor flip(const Tensor& x, const std::vector<int>& dims);
// Entry i of dims[k] moves on by shifts[k], and from the end to the beginning. Throws where the two differ in length.
Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, const std::vector<int>& dims);
// `before` and `after` elements of `value` around each of the last dimensions: one pair each, outermost first. Negative
// amounts cut as many off. Throws where they cut off more than there is.
Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts, Scalar value = 0);
// The same with x mirrored at its first and last entry instead of a value: [a, b, c] with {2, 1} is [c, b, a, b, c, b].
// Throws where an amount is negative or not below the size of its dimension.
Tensor pad_reflect(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts);
Tensor repeat(const Tensor& x, const std::vector<int64_t>& times);  // tiles: times[i] copies along dimension i
// Each entry along dim, of a rank below the limit, `times` times in a row: [a, b] to [a, a, b, b].
Tensor repeat_interleave(const Tensor& x, int64_t times, int dim);
Tensor tril(const Tensor& x, int64_t diagonal = 0);  // zero above the diagonal of the last two dimensions
Tensor triu(const Tensor& x, int64_t diagonal = 0);  // zero below it
// A vector [n] becomes the diagonal of a matrix of zeros [n + |diagonal|, n + |diagonal|]; a matrix gives its diagonal,
// a vector. diagonal > 0: above the main diagonal, < 0: below. Throws on another rank, and if a matrix has no such
// diagonal.
Tensor diag(const Tensor& x, int64_t diagonal = 0);
// For axes of rank 1 with sizes n_1 ... n_k as many tensors [n_1, ..., n_k], views: the i-th is axes[i] along dimension
// i and constant along the others ("ij"). Throws on another rank, and where they lie on two devices.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);
// Image [n, height, width, channels] to rows of patches [n, (h/p)(w/p), p p channels]; inside a row: (row, column,
// channel).
Tensor patchify(const Tensor& images, int64_t patch);

}  // namespace isonorm
