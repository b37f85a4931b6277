// Rotations of a residual stream. RMSNorm divides a row by its length, which an orthogonal matrix Q does not change: with rows
// x^T Q for x^T the model is the same where writers become Q^T W and readers A Q (SliceGPT 2401.15024, section 3; QuaRot
// 2404.00456, section 4; SpinQuant 2405.16406). All matrices are [d, d] in f64.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace isonorm::streams {

// x along dimension `dim` times a matrix from the right: each row r [n] of x becomes r M. M [n, m] of x's dtype;
// differentiable. Throws where the sizes do not fit.
Tensor times(const Tensor& x, int dim, const Tensor& matrix);

// The randomized Hadamard rotation: Q^T = H diag(s) / sqrt(d) with s of random signs, H of entries +-1. d is 2^k, or 2^k (q +
// 1) with a prime q = 4n + 3 (Paley's first construction: 12, 20, 768, 1280, 1600). Throws for another d.
Tensor hadamard_rotation(int64_t d, uint64_t seed);
// One that no direction is preferred by (Haar's measure): rows of a normal matrix, made orthogonal in turn, which is QR with a
// positive diagonal (Mezzadri, math-ph/0609050).
Tensor haar_rotation(int64_t d, uint64_t seed);
// That of a .npy file, or of a safetensors file with one tensor: f32 or f64. What rounding left of Q^T Q - I is taken off.
// Throws, naming the file, where it holds something else, or Q^T Q - I has an entry above 2 sqrt(d) eps of the file's dtype.
Tensor load_rotation(const std::string& path, int64_t d);

// The largest entry of |Q^T Q - I|; NaN where Q has one.
double off_orthogonal(const Tensor& q);
// The orthogonal matrix that is nearest to one for which that is below 1/2 (Newton and Schulz: X (3 I - X^T X) / 2, until
// rounding is all that is left; Higham, Functions of Matrices, section 8.3).
Tensor nearest_orthogonal(const Tensor& matrix);

}  // namespace isonorm::streams
