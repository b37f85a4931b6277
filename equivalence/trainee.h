// A model under training in a proof: its parameters in whatever coordinates, its optimizer, and how far it is from
// another one.
#pragma once

#include <cmath>
#include <memory>

#include "equivalence/options.h"
#include "nn/module.h"
#include "nn/stream.h"
#include "optim/optimizer.h"

namespace isonorm::equivalence {

// What the data decide about a model.
struct ModelShape {
  int64_t image = 28, channels = 1, classes = 10;  // vit
  int64_t vocab = 0;                               // gpt
};

// Inputs and targets of one step: images or ids, and i64 labels.
struct Examples {
  Tensor inputs, targets;
};

// The model that `options` describe, on a stream of the given form and storage, with parameters of options.dtype.
std::unique_ptr<nn::Module> build_model(const ProofOptions& options, const ModelShape& shape, const nn::Stream& stream);
std::unique_ptr<optim::Optimizer> build_optimizer(const ProofOptions& options, const std::vector<Tensor>& parameters);

class Trainee {
 public:
  Trainee(const ProofOptions& options, const ModelShape& shape, const nn::Stream& stream);

  // Forward, loss, backward. Keeps the loss and the gradients in raw coordinates.
  void differentiate(const Examples& batch);
  // Clips and updates at rate `lr`; keeps the visible weights.
  void update(double lr);

  nn::Module& model() { return *model_; }
  const nn::Stream& stream() const { return stream_; }
  double loss() const { return loss_; }

  // Deviation of this run's gradients (after differentiate) and weights (after update) from those of `reference`: see
  // Deviations.
  double gradient_deviation(const Trainee& reference) const;
  double weight_deviation(const Trainee& reference) const;

  // The most likely class of each example.
  std::vector<int64_t> predict(const Tensor& inputs);

 private:
  double clip_;
  bool affine_;
  nn::Stream stream_;
  std::unique_ptr<nn::Module> model_;
  std::vector<nn::Parameter> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double loss_ = 0;
  std::vector<Tensor> gradients_, weights_;
};

// The larger of two deviations. NaN, once met, stays: std::max would lose it.
inline double larger(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

// Moves every element of every parameter to the next floating-point number above or below it, at random.
void move_by_one_ulp(nn::Module& model, uint64_t seed);

}  // namespace isonorm::equivalence
