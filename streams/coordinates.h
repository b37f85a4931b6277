// The coordinates of a residual stream: differentiable linear maps, each along one dimension of a tensor, between rows
// of width d and the rows that the forms of a Stream store. P = I - 11^T/d; D = [I; -1^T] (d x (d - 1)) restores a
// zero-mean row from its first d - 1 entries; D+ = (D^T D)^-1 D^T = [I 0] P is its pseudo-inverse; Q is the Helmert
// basis of the zero-mean rows. A weight that writes to the stream contains rows of it and moves by these maps. A weight
// that reads from the stream is multiplied with rows and moves by the transposed maps (2305.14858, sections 3.1 and
// 3.2).
#pragma once

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

// Q^T x: from d to d - 1.
Tensor to_isometric(const Tensor& x, int dim);
// Q w: from d - 1 to d. Q^T Q = I, Q Q^T = P.
Tensor from_isometric(const Tensor& w, int dim);

// The Helmert basis Q [d, d - 1], f64: column k has 1/sqrt(k(k+1)) in rows 0..k-1 and -k/sqrt(k(k+1)) in row k (k
// = 1..d-1).
Tensor helmert(int64_t d);

}  // namespace isonorm::streams
