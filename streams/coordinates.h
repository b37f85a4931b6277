// The coordinates of a residual stream: differentiable linear maps, each along one dimension of a tensor, between rows
// of width d and the rows that the forms of a Stream store. P = I - 11^T/d; D = [I; -1^T] (d x (d - 1)) restores a
// zero-mean row from its first d - 1 entries; D+ = (D^T D)^-1 D^T = [I 0] P is its pseudo-inverse; Q is an orthonormal
// basis of the zero-mean rows, such as Helmert's. A weight that writes to the stream contains rows of the stream and
// moves by these maps. A weight that reads from the stream is multiplied with rows and moves by the transposed maps
// (2305.14858, sections 3.1 and 3.2).
#pragma once

#include <vector>

#include "autograd/ops/reduce.h"

namespace isonorm::streams {

using isonorm::recentre;  // P x, along one dimension (2305.14858, lemma 3.1)

// D+ x: the first d - 1 entries of P x.
Tensor compress_writer(const Tensor& x, int dim);
// D v = (v, -sum v): from d - 1 to d. D+ D = I, D D+ = P.
Tensor expand_writer(const Tensor& v, int dim);

// D^T a: the first d - 1 entries of a minus its last entry. A reader A becomes A D, which reads v as A reads D v.
Tensor compress_reader(const Tensor& a, int dim);
// D+^T b = D (b - sum(b)/d), since (D^T D)^-1 = I - 11^T/d: from d - 1 to d. D^T D+^T = I, D+^T D^T = P.
Tensor expand_reader(const Tensor& b, int dim);

// An orthonormal basis Q of the zero-mean rows of width d, as the columns of a matrix [d, d - 1]. Objects live as long
// as the maps that are made from them.
struct Basis {
  const char* name;
  Tensor (*matrix)(int64_t d);  // f64
  // Faster ways than by the matrix, for a matrix with structure; null: there is none.
  // w <- Q w in place, or |Q| w, on one row of d - 1 numbers.
  void (*expand_row)(std::vector<double>& w, bool absolute) = nullptr;
  // Among the columns whose last nonzero entry is entry i, or the first column if i is 0: the column whose every entry
  // up to i is at least as large as in the columns after it.
  size_t (*first_column)(size_t i) = nullptr;
};
// The Helmert basis: column k has 1/sqrt(k(k+1)) in rows 0..k-1 and -k/sqrt(k(k+1)) in row k (k = 1..d-1).
extern const Basis kHelmert;
Tensor helmert(int64_t d);

// Q^T x: from d to d - 1, and Q w: from d - 1 to d. Q^T Q = I, Q Q^T = P.
Tensor to_basis(const Tensor& x, int dim, const Basis& basis);
Tensor from_basis(const Tensor& w, int dim, const Basis& basis);

// The matrix of a basis in a dtype and on a device. The last few are cached: a model needs one or two, for every weight
// in every forward. Nobody may write to it.
Tensor basis_matrix(const Basis& basis, int64_t d, DType dtype, Device device);

}  // namespace isonorm::streams
