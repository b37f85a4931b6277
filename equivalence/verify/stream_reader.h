// The readers of a residual stream in f64: the readers of a state, and a reader's outputs for given rows.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

struct StreamReader {
  std::string name, norm;
  Tensor weight, bias;              // [out, parts * stored width], [out] or undefined
  std::string tensor, bias_tensor;  // names of the source tensors
  int64_t parts = 1;                // number of rows that it reads side by side
};

// The readers and tied heads of a plan. The state must have all their tensors.
std::vector<StreamReader> readers_of(const TensorMap& state, const streams::Plan& plan);

// The norm of a reader. Throws if the plan has no such norm.
const streams::NormPlace& norm_of(const streams::Plan& plan, const StreamReader& reader);

// norm(rows) and A norm(rows) + b: [n, stored width] to [n, parts * stored width] and [n, out]. If a reader has several
// rows side by side, the second, fourth, .. is norm(-row).
Tensor normalised(const TensorMap& state, const streams::Plan& plan, const streams::NormPlace& norm, const Tensor& rows,
                  int64_t parts = 1);
Tensor seen(const TensorMap& state, const streams::Plan& plan, const StreamReader& reader, const Tensor& rows);

// A tensor of a state in f64, without its graph. Throws if it is missing.
Tensor widened(const TensorMap& state, const std::string& name);

}  // namespace isonorm::equivalence
