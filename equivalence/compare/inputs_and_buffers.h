// Internal: the results of a step besides the loss and the gradients of parameters: gradients of floating inputs, and
// buffers.
#pragma once

#include "equivalence/coordinates/parameter_map.h"
#include "training/steps/examples.h"

namespace isonorm::equivalence {

// A batch whose floating inputs and further tensors take gradients; targets do not. The model gets copies that are no
// leaves, so that it may write to them. Throws nothing of its own.
class TrackedInputs {
 public:
  explicit TrackedInputs(const training::Examples& batch);

  const training::Examples& batch() const { return batch_; }
  const std::vector<std::string>& names() const { return names_; }  // "inputs", "more[0]", ...
  // After a backward, one for each name. Zeros if the loss does not depend on the input.
  std::vector<Tensor> gradients() const;

 private:
  Tensor tracked(const Tensor& x, const std::string& name);

  training::Examples batch_;
  std::vector<std::string> names_;
  std::vector<Tensor> leaves_;
};

// Buffers of A and B that the map relates: same shape and dtype, and at present the same values up to rounding.
class BufferPairs {
 public:
  // dtype: of the parameters. Floating buffers of another dtype are not compared, since their rounding is another one.
  BufferPairs(const nn::Module& a, const nn::Module& b, const ParameterMap& map, DType dtype);

  const std::vector<std::string>& names() const { return names_; }        // in A
  const std::vector<std::string>& unpaired() const { return unpaired_; }  // "cos", "mask of the second model"
  // Copies of the present buffers in f64, one for each name: A's as B stores them, and B's.
  std::vector<Tensor> of_first(const nn::Module& a) const;
  std::vector<Tensor> of_second(const nn::Module& b) const;

 private:
  std::vector<std::string> names_, unpaired_;
  std::vector<Route> routes_;
};

// The buffers of a module: its state without its parameters.
TensorMap buffers_of(const nn::Module& module);

}  // namespace isonorm::equivalence
