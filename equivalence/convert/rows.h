// The rows of a residual stream that the tensors of a checkpoint write and read, in f64.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// x as rows along dimension `dim`: [product of the other dimensions, size of dim]. parts: cuts each row into this many
// rows, one after the other.
Tensor by_rows(const Tensor& x, int dim, int64_t parts = 1);

// The rows [n, width] of a writer as they enter the stream: normalized if its rows go through a norm.
Tensor behind_norm(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Writer& writer,
                   const Tensor& rows);

struct ReaderWeights {
  Tensor weight, bias;  // [out, parts * stored width], [out] or undefined
};

// The weight and bias with which a reader or a tied head reads. The state must have its tensors.
ReaderWeights weights_of(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Reader& reader);

// norm(rows): [n, stored width] to [n, parts * stored width]. If a reader has several rows side by side, the second,
// fourth, .. is norm(-row).
Tensor normalised(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Norm& norm,
                  const Tensor& rows, int64_t parts = 1);

}  // namespace isonorm::equivalence
