// What reads a residual stream, in f64: the readers of a state, and what one of them sees of rows through its norm.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

struct StreamReader {
  std::string name, norm;
  Tensor weight, bias;              // [out, parts * stored width], [out] or undefined
  std::string tensor, bias_tensor;  // that they are made of
  int64_t parts = 1;                // rows that it reads side by side
};

// The readers and tied heads of a layout, of which the state has all tensors.
std::vector<StreamReader> readers_of(const TensorMap& state, const streams::Placement& layout);

// The norm that it reads through. Throws where the layout has none of that name.
const streams::NormPlace& norm_of(const streams::Placement& layout, const StreamReader& reader);

// norm(rows) and A norm(rows) + b: [n, stored width] to [n, parts * stored width] and [n, out]. Of several rows side by side
// the second, fourth.. is norm(-row).
Tensor normalised(const TensorMap& state, const streams::Placement& layout, const streams::NormPlace& norm,
                  const Tensor& rows, int64_t parts = 1);
Tensor seen(const TensorMap& state, const streams::Placement& layout, const StreamReader& reader, const Tensor& rows);

// One tensor of a state in f64, without its graph. Throws where it is not there.
Tensor widened(const TensorMap& state, const std::string& name);

}  // namespace isonorm::equivalence
