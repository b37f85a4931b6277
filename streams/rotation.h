// Rotations of the residual stream. RMSNorm divides a row by its length, which an orthogonal matrix Q does not change.
// The model therefore stays the same if its rows x^T become x^T Q, its writers Q^T W and its readers A Q (SliceGPT
// 2401.15024, section 3; QuaRot 2404.00456, section 4; SpinQuant 2405.16406). All matrices are [d, d] in f64.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace isonorm::streams {

// Multiplies each row r [n] along dimension `dim` of x by a matrix: r M. M [n, m] has x's dtype; differentiable. Throws
// if the sizes do not fit.
Tensor times(const Tensor& x, int dim, const Tensor& matrix);

// The randomized Hadamard rotation Q^T = H diag(s) / sqrt(d): s has random signs, H has entries +-1. d is 2^k, or 2^k
// (q + 1) with a prime q = 4n + 3 (Paley's first construction: 12, 20, 768, 1280, 1600). Throws for another d.
Tensor hadamard_rotation(int64_t d, uint64_t seed);
// A uniformly distributed rotation (Haar measure): the rows of a normal matrix, orthogonalized in turn, which is QR
// with a positive diagonal (Mezzadri, math-ph/0609050).
Tensor haar_rotation(int64_t d, uint64_t seed);
// Reads a rotation from a .npy file, or from a safetensors file with one tensor: f32 or f64. Returns the nearest
// orthogonal matrix, which removes the file's rounding errors. Throws, naming the file, if the contents are something
// else, or if Q^T Q - I has an entry above 2 sqrt(d) eps of the file's dtype.
Tensor load_rotation(const std::string& path, int64_t d);

// Returns the largest entry of |Q^T Q - I|; NaN if Q has a NaN.
double off_orthogonal(const Tensor& q);
// Returns the orthogonal matrix nearest to a matrix with off_orthogonal() below 1/2. Newton-Schulz iteration X (3 I -
// X^T X) / 2, until only rounding errors are left (Higham, Functions of Matrices, section 8.3).
Tensor nearest_orthogonal(const Tensor& matrix);

}  // namespace isonorm::streams
