// The conditions under which a checkpoint can be converted exactly, checked tensor by tensor.
#pragma once

#include <map>
#include <set>

#include "core/tensor_map.h"
#include "io/lazy_state.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// Throws, naming tensor and reason, if the state does not fit the plan or the plan cannot be converted; see
// convert().
void check_convertible(const TensorMap& state, const streams::Plan& plan);

// The parts of check_convertible(). check_form: the form has other forms, or, with a rotation, may be rotated.
// check_plan: names, dtypes and shapes. check_values: mapped tensors are finite, if present.
void check_form(const streams::Plan& plan);
void check_plan(const TensorMap& outline, const streams::Plan& plan);
void check_values(const TensorMap& state, const streams::Plan& plan);

// Throws, with the reason, if a rotation of the stored rows would change the function: norms must divide a row by its
// length and act on no single coordinate, and all rows must come from weights.
void check_rotatable(const streams::Plan& plan);

// The state with the gains of the function: 1 + w in f64 if w is stored (streams::NormPlace::plus_one).
LazyState with_gains(LazyState stored, const streams::Plan& plan);
TensorMap with_gains(const TensorMap& stored, const streams::Plan& plan);

// Throws if a mapped tensor has a dtype that is only held as bytes. foreign: names and dtypes of these tensors
// (training::ModelFile).
void check_dtypes(const streams::Plan& plan, const std::map<std::string, std::string>& foreign);

// The coarsest format of the floating tensors of a state; f64 if it has none. half: the f16 tensors (LazyState).
NumberFormat coarsest(const TensorMap& state, const std::set<std::string>& half = {});

// Checks that a writer of an RMSNorm model is zero-mean along the stream. It may come in pieces of the same format.
class ZeroMean {
 public:
  void add(const Tensor& writer, int dim, NumberFormat format);
  // Throws if the writer is not zero-mean up to rounding to the format: |mean| <= eps max |w|, or a step between
  // subnormal numbers.
  void check_writer(const std::string& name) const;

 private:
  double off_ = 0, size_ = 0;
  NumberFormat format_ = DType::f64;
};

}  // namespace isonorm::equivalence
