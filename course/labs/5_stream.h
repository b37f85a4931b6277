// Lab 5: the residual stream and its coordinates. 6 hours.
//
// Goal: store one network in four ways that compute the same.
// Read: docs/normalization.md, "The stream" and "What gradients see"; run examples/09_hidden_projection.
// Do:   5_stream.cpp. Use tensor functions, but not isonorm::streams (the tests compare with it). Answer the "Predict"
//       boxes of both sections before you run their commands.
// Hand in: 5_stream.cpp.
#pragma once

#include "support/library.h"

namespace course {

using isonorm::Tensor;
using isonorm::streams::Form;  // this lab uses layer_norm, rms_norm, crms_norm, crms_isometric

// The Helmert basis [d, d - 1], f64. Column k = 1 .. d - 1 has 1 / sqrt(k (k + 1)) in its first k rows,
// -k / sqrt(k (k + 1)) in the next row, and 0 below: Q^T Q = I, Q Q^T = P.
Tensor helmert_basis(int64_t d);

// All lists are in the order of the four forms. The stored form of a writer W [d, in]:
// W | P W | first d - 1 rows of P W | Q^T W.
Tensor stored_writer(Form form, const Tensor& w);

// The stored form of a reader A [out, d]:  A | A | A[:, :-1] - A[:, -1:] | A Q.
Tensor stored_reader(Form form, const Tensor& a);

// The norm of a stored row:  LayerNorm | RMSNorm | CRMSNorm | RMSNorm of d - 1 entries, divided by d.
Tensor stored_norm(Form form, const Tensor& rows, double eps = 1e-5);

// The whole row P x [..., d] that a stored row represents.
Tensor restored(Form form, const Tensor& rows);

// A reader (A, b) of a norm with gain and bias, turned into a reader of the norm without them:
// A (gain n + bias) + b = A' n + b'.
struct Reader {
  Tensor weight, bias;  // [out, d], [out]
};
Reader folded(const Reader& reader, const Tensor& gain, const Tensor& bias);

}  // namespace course
