// The coordinates of a residual stream: the linear maps between rows of width d and what the forms of a Stream store of
// them, each along one dimension of a tensor, differentiable. With P = I - 11^T/d, D = [I; -1^T] (d x (d - 1), the
// zero-mean rows from their first d - 1 entries) and its pseudo-inverse D+ = (D^T D)^-1 D^T = [I 0] P, and Q the
// Helmert basis of the zero-mean rows. A weight that writes to the stream holds rows of it; one that reads from it is
// paired with rows, so it moves by the transposed maps (2305.14858, sections 3.1 and 3.2).
#pragma once

#include "autograd/ops/reduce.h"

namespace isonorm::streams {

using isonorm::recentre;  // P x, along one dimension (2305.14858, lemma 3.1)

// D+ x: the first d - 1 entries of P x.
Tensor compress_writer(const Tensor& x, int dim);
// D v = (v, -sum v): from d - 1 to d. D+ D = I, D D+ = P.
Tensor expand_writer(const Tensor& v, int dim);

// D^T a: the first d - 1 entries of a minus its last one. What A becomes so that it reads v instead of D v.
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
