// Functions that show the elements in another shape. Functions marked "view" share storage with their argument. All are
// differentiable for floating tensors and take any dtype. Negative dimensions count from the end; a wrong dimension
// throws "op: dimension 5 is out of range for rank 3". Versions without graph: core/view.h.
#pragma once

#include <utility>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

// The same elements in row-major order under another shape; one size may be -1. A view if the strides allow it, else a
// copy.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor view(const Tensor& x, const Dims& shape);  // like reshape, but throws if it would copy
Tensor flatten(const Tensor& x, int first = 0, int last = -1);
Tensor permute(const Tensor& x, const std::vector<int>& order);  // view: dimension i of the result is order[i] of x
Tensor transpose(const Tensor& x, int a, int b);                 // view
Tensor squeeze(const Tensor& x, int dim);                        // view: drops a dimension of size 1
Tensor unsqueeze(const Tensor& x, int dim);                      // view: a new dimension of size 1 before `dim`
Tensor expand(const Tensor& x, const Dims& shape);  // view: stretches sizes of 1 with stride 0; -1 keeps a size
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step = 1);  // view; negative ends count back
Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length);                // view
Tensor select(const Tensor& x, int dim, int64_t index);                                // view: drops dim
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim);  // views
std::vector<Tensor> chunk(const Tensor& x, int64_t parts, int dim);  // views of equal size, the last may be smaller
std::vector<Tensor> unbind(const Tensor& x, int dim = 0);            // views: select(x, dim, i) for each i
// View of every window of `size` entries along `dim`, `step` from one to the next. The windows lie along `dim`, and the
// entries of a window become a new last dimension: [.., n, ..] to [.., (n - size) / step + 1, .., size]. The gradient
// sums over the windows that contain an entry. Throws if size is not in [1, n], step < 1, or x has the largest rank.
Tensor unfold(const Tensor& x, int dim, int64_t size, int64_t step);

Tensor contiguous(const Tensor& x);  // x itself if it is row-major without gaps, else a copy

// Functions that move elements: joining, flipping, padding, tiling, masking triangles. The result is a new tensor. All
// are differentiable for floating tensors and take any dtype. Negative dimensions count from the end; a wrong dimension
// throws "op: dimension 5 is out of range for rank 3".

Tensor cat(const std::vector<Tensor>& parts, int dim = 0);    // along dim
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);  // along a new dimension
// Joins sequences [length_i, ...] of the same dtype that agree in all later dimensions, and pads each at its end with
// `value`. Gives [sequences, longest, ...], the layout of nn::Lstm, or [longest, sequences, ...] (PyTorch's default) if
// not batch_first. The mask of the valid steps, [sequences, longest], is arange(longest) < lengths.unsqueeze(1). Throws
// if there are no sequences.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = true, Scalar value = 0);
Tensor flip(const Tensor& x, const std::vector<int>& dims);
// Moves the entries of dims[k] by shifts[k]; entries that leave the end return at the beginning. Throws if the lengths
// of shifts and dims differ.
Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, const std::vector<int>& dims);
// Puts `before` and `after` elements of `value` around each of the last dimensions: one pair each, outermost first.
// Negative amounts cut elements off. Throws if they cut off more than there are.
Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts, Scalar value = 0);
// Like pad(), but with x mirrored at its first and last entry: [a, b, c] with {2, 1} becomes [c, b, a, b, c, b]. Throws
// if an amount is negative or not below the size of its dimension.
Tensor pad_reflect(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts);
Tensor repeat(const Tensor& x, const std::vector<int64_t>& times);  // tiles: times[i] copies along dimension i
// Repeats each entry along dim `times` times in a row: [a, b] to [a, a, b, b]. x's rank must be below the limit.
Tensor repeat_interleave(const Tensor& x, int64_t times, int dim);
Tensor tril(const Tensor& x, int64_t diagonal = 0);  // zero above the diagonal of the last two dimensions
Tensor triu(const Tensor& x, int64_t diagonal = 0);  // zero below the diagonal
// A vector [n] becomes the diagonal of a matrix of zeros [n + |diagonal|, n + |diagonal|]; a matrix gives its diagonal,
// a vector. diagonal > 0: above the main diagonal, < 0: below. Throws for another rank, and if a matrix has no such
// diagonal.
Tensor diag(const Tensor& x, int64_t diagonal = 0);
// Coordinate grids: for k axes of rank 1 with sizes n_1 ... n_k gives k views [n_1, ..., n_k]. View i is axes[i] along
// dimension i and constant along the others ("ij"). Throws for another rank, and if the axes are on different devices.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);
// Image [n, height, width, channels] to rows of patches [n, (h/p)(w/p), p p channels]; order within a row: (row,
// column, channel).
Tensor patchify(const Tensor& images, int64_t patch);

}  // namespace isonorm
