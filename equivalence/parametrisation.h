// Between the coordinates in which runs store their parameters. Raw: as the Pre-LN model has them. Mapped: as a stream
// of another form uses them. Comparisons take place in raw coordinates.
#pragma once

#include "core/tensor_map.h"
#include "nn/module.h"
#include "nn/stream.h"

namespace isonorm::equivalence {

// The parameters of a raw model in the coordinates of `stream`: writers and readers mapped (S2, S3 of
// docs/normalization.md), others as they are.
TensorMap mapped_state(const nn::Module& raw, const nn::Stream& stream);

// A stored gradient of a mapped parameter as the gradient of the raw one that the reference would have; for raw storage
// the gradient itself. For the compressed form, B = C P W of a writer and B = A D of a reader give dW = D (D^T D)^-1 dB
// and dA = dB D^T.
Tensor raw_gradient(const Tensor& gradient, const nn::Parameter& p, const nn::Stream& stream);

// A parameter in raw coordinates without what its model's function cannot see: P W of a writer, A P of a reader (where
// `reader_blind`: its norm has no learned gain), blind rows as 0.
Tensor visible_weight(const nn::Parameter& p, const nn::Stream& stream, bool reader_blind);

}  // namespace isonorm::equivalence
