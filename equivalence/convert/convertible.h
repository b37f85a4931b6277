// What must hold before a checkpoint can be converted exactly, checked tensor by tensor.
#pragma once

#include <map>

#include "core/tensor_map.h"
#include "io/lazy_state.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

// Throws, naming tensor and reason, where the state does not fit the layout or the layout cannot be converted; see
// convert().
void check_convertible(const TensorMap& state, const streams::Placement& layout);

// Its parts: that the form has others, or may be rotated where the layout has a rotation; names, dtypes and shapes alone; and
// that what is mapped is finite, of the tensors that are there.
void check_form(const streams::Placement& layout);
void check_layout(const TensorMap& outline, const streams::Placement& layout);
void check_values(const TensorMap& state, const streams::Placement& layout);

// Throws, with the reason, where a rotation of the stored rows makes another function: norms must divide a row by its length,
// and do nothing to single coordinates, and all rows must come from weights.
void check_rotatable(const streams::Placement& layout);

// Gains as the function has them: 1 + w in f64 where w is stored (streams::NormPlace::plus_one).
LazyState with_gains(LazyState stored, const streams::Placement& layout);
TensorMap with_gains(const TensorMap& stored, const streams::Placement& layout);

// Throws where a tensor that is mapped is of a dtype that is held as bytes; foreign: names and dtypes of such tensors
// (training::ModelFile).
void check_dtypes(const streams::Placement& layout, const std::map<std::string, std::string>& foreign);

// The coarsest floating dtype of a state; f64 where it has none.
DType coarsest(const TensorMap& state);

// The means of a writer of a model with RMSNorm along the stream, which may come in pieces of the same dtype.
class ZeroMean {
 public:
  void add(const Tensor& writer, int dim, DType dtype);
  void check_writer(const std::string& name) const;  // throws as check_zero_mean

 private:
  double off_ = 0, size_ = 0;
  DType dtype_ = DType::f64;
};

// Throws where a writer [.., d, ..] of a model with RMSNorm is not zero-mean along `dim`, as far as rounding to `dtype`
// allows: |mean| <= eps(dtype) max |w|, or a step between subnormal numbers.
void check_zero_mean(const std::string& name, const Tensor& writer, int dim, DType dtype);

}  // namespace isonorm::equivalence
