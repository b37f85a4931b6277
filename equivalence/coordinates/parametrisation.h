// Between the coordinates in which runs store their parameters. Raw: as the Pre-LN model has them. Mapped: as a stream
// of another form uses them. Comparisons take place in raw coordinates.
#pragma once

#include "core/tensor_map.h"
#include "equivalence/coordinates/variant.h"
#include "streams/map.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

using streams::Map;

// M: how a parameter's stored value comes from the raw one. The identity for neutral parameters and raw storage.
Map stored_map(const streams::NamedParameter& p, const streams::Stream& stream);

// From the stored value to raw coordinates: R with M R = I for compressed values, else the identity (a recentred weight
// is a raw weight).
Map restoring_map(const streams::NamedParameter& p, const streams::Stream& stream);

// The parameters of a raw model as a model on `stream` stores them: for mapped storage writers and readers mapped (S2,
// S3 of docs/normalization.md), others as they are.
TensorMap mapped_state(const nn::Module& raw, const streams::Stream& stream);

// Takes the mean along the stream away from the parameters that `projection` names, in place.
void project(const std::vector<streams::NamedParameter>& parameters, Projection projection);

// The gradient g of a stored parameter as the gradient of the raw one that the reference would have: M* g where the
// stored value is compressed, g itself elsewhere. Not projected: the mean of a writer's gradient in plain RMSNorm (F6)
// stays.
Tensor raw_gradient(const Tensor& gradient, const streams::NamedParameter& p, const streams::Stream& stream);

// A parameter in raw coordinates without what its model's function cannot see: P W of a writer, A P of a reader (where
// `reader_blind`: its norm has no learned gain), blind rows as 0.
Tensor visible_weight(const streams::NamedParameter& p, const streams::Stream& stream, bool reader_blind);

}  // namespace isonorm::equivalence
