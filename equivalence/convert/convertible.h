// What must hold before a checkpoint can be converted exactly, checked tensor by tensor.
#pragma once

#include <map>
#include <set>

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

// The coarsest format of the floating tensors of a state; f64 where it has none. half: of these (LazyState).
NumberFormat coarsest(const TensorMap& state, const std::set<std::string>& half = {});

// The means of a writer of a model with RMSNorm along the stream, which may come in pieces of the same format.
class ZeroMean {
 public:
  void add(const Tensor& writer, int dim, NumberFormat format);
  // Throws where the writer is not zero-mean, as far as rounding to the format allows: |mean| <= eps max |w|, or a step between
  // subnormal numbers.
  void check_writer(const std::string& name) const;

 private:
  double off_ = 0, size_ = 0;
  NumberFormat format_ = DType::f64;
};

}  // namespace isonorm::equivalence
