// Training compressed parameters as if they were raw. With M the map from raw parameters to stored ones (map.h) and g
// the gradient of a stored one, the raw gradient is M* g. A linear optimizer may work in stored coordinates with M M* g
// instead of g; any optimizer that does not read the mean of the weights may run in raw coordinates.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/module.h"
#include "optim/optimizer.h"
#include "streams/parametrize.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// g <- M M* g for the gradient of every writer and reader of a model with mapped storage on `stream`: the inverse
// metric of the stored coordinates, I - 11^T/d for writers and I + 11^T for readers of crms_norm, P for writers of
// rms_norm, I for crms_isometric. Makes new tensors; parameters without a gradient are skipped. SGD, momentum and
// Nesterov, with L2 or decoupled decay, then follow the Pre-LN trajectory.
void correct_gradients(const std::vector<streams::NamedParameter>& parameters, const streams::Stream& stream);

// sqrt(sum |M* g|^2) over all parameters: the norm of the raw gradients that the stored ones represent. Clipping
// corrected gradients by this norm, taken before correct_gradients(), follows Pre-LN; by their own norm it does not.
double raw_gradient_norm(const std::vector<streams::NamedParameter>& parameters, const streams::Stream& stream);

// An optimizer in raw coordinates over stored ones, for a model with mapped storage:
//
//   Lifted opt(streams::named_parameters(model), stream, [](const std::vector<Tensor>& raw) {
//     return std::make_unique<optim::AdamW>(raw, optim::AdamWOptions{.lr = 1e-3});
//   });
//   opt.zero_grad();
//   backward(cross_entropy(model(x), y));
//   opt.lift();                                          // raw gradients
//   optim::clip_grad_norm(opt.raw_parameters(), 1.0);    // clips raw gradients, as Pre-LN does
//   opt.step();
//
// Follows the Pre-LN trajectory for every optimizer whose update is linear in the weights: raw weights are known only
// up to their mean along the stream, and such an update keeps that mean without reading it. The optimizer's state has
// raw shapes; raw weights exist only between lift() and step(), as values made from the stored ones.
class Lifted {
 public:
  using Make = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>& raw)>;

  // Throws if the storage of `stream` is raw.
  Lifted(std::vector<streams::NamedParameter> parameters, const streams::Stream& stream, const Make& make);

  // Clears stored and raw gradients.
  void zero_grad();
  // Raw weights and gradients from the stored ones: w = R v with M R = I, dw = M* dv.
  void lift();
  // A step of the optimizer on what lift() made, then v = M w.
  void step(double gradient_scale = 1);

  // In the order of the parameters. A parameter without a map is its own raw parameter.
  const std::vector<Tensor>& raw_parameters() const { return raw_; }
  optim::Optimizer& optimizer() { return *optimizer_; }

 private:
  bool mapped(const streams::NamedParameter& p) const;

  std::vector<streams::NamedParameter> parameters_;
  streams::Stream stream_;
  std::vector<Tensor> raw_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace isonorm::equivalence
