// Maps between the coordinates of runs that store their parameters differently. Raw: as the Pre-LN model stores them.
// Mapped: as a stream of another form uses them. Comparisons use raw coordinates.
#pragma once

#include "core/tensor_map.h"
#include "equivalence/coordinates/variant.h"
#include "streams/map.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

using streams::Map;

// M: maps a parameter's raw value to the stored one. The identity for neutral parameters and raw storage.
Map stored_map(const streams::NamedParameter& p, const streams::Stream& stream);

// Maps the stored value to raw coordinates: R with M R = I for compressed values, otherwise the identity (a recentred
// weight is a raw weight).
Map restoring_map(const streams::NamedParameter& p, const streams::Stream& stream);

// The parameters of a raw model as a model on `stream` stores them: with mapped storage, writers and readers are mapped
// (S2, S3 of docs/normalization.md), others stay.
TensorMap mapped_state(const nn::Module& raw, const streams::Stream& stream);

// Removes the mean along the stream from the parameters that `projection` names, in place.
void project(const std::vector<streams::NamedParameter>& parameters, Projection projection);

// The gradient g of a stored parameter as the gradient of the reference's raw parameter: M* g if the stored value is
// compressed, otherwise g. Not projected: the mean of a writer's gradient in plain RMSNorm (F6) stays.
Tensor raw_gradient(const Tensor& gradient, const streams::NamedParameter& p, const streams::Stream& stream);

// A parameter in raw coordinates without the directions that the function cannot see: P W for a writer, A P for a
// reader if reader_blind (its norm has no learned gain), and blind rows as 0.
Tensor visible_weight(const streams::NamedParameter& p, const streams::Stream& stream, bool reader_blind);

}  // namespace isonorm::equivalence
