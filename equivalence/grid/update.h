// An optimizer's update without a model: weights that follow a given history of gradients. Also linear maps of both.
#pragma once

#include <functional>
#include <vector>

#include "core/random.h"
#include "nn/module.h"
#include "streams/parametrize.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

// One step on the parameters that it was made for: reads their gradients, changes them in place.
using Update = std::function<void()>;
using MakeUpdate = std::function<Update(const std::vector<streams::NamedParameter>& parameters)>;

// The optimizer of `options` at their constant rate, with all limits on gradients, updating like a Trainee.
MakeUpdate update_of(const training::TrainingOptions& options);

struct History {
  std::vector<Tensor> weights;                 // at the start, by parameter
  std::vector<std::vector<Tensor>> gradients;  // by step and parameter
};
using Track = std::vector<std::vector<Tensor>>;  // the weights after every step

// A map of tensors. The parameter gives role and stream dimension.
using TensorFunction = std::function<Tensor(const Tensor& x, const streams::NamedParameter& p)>;

// Makes the update on parameters with the names of `like`, and runs it through the history. After every step each
// weight w is replaced by after(w).
Track follow(const MakeUpdate& make, const std::vector<streams::NamedParameter>& like, const History& history,
             const TensorFunction& after = {});

// Apply functions to weights and gradients. An empty function changes nothing.
History changed(const std::vector<streams::NamedParameter>& like, const History& history, const TensorFunction& weights,
                const TensorFunction& gradients = {});
Track changed(const std::vector<streams::NamedParameter>& like, const Track& track, const TensorFunction& weights);

// M x along dimension `dim` of x, M a matrix [outputs, size of dim].
Tensor along(const Tensor& matrix, const Tensor& x, int dim);
// Returns a random orthogonal matrix [d, d] in f64: a product of d reflections I - 2 v v^T / |v|^2.
Tensor orthogonal_matrix(int64_t d, Generator& generator);

}  // namespace isonorm::equivalence
