#include "equivalence/compare/own_negative_controls.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "nn/norm.h"

namespace isonorm::equivalence {

std::vector<Tensor> gains(const nn::Module& module) {
  std::vector<Tensor> found;
  for (const auto& [_, m] : module.named_modules())
    if (dynamic_cast<const nn::Norm*>(m))
      for (const Tensor& p : m->parameters()) found.push_back(p);
  return found;
}

void Frozen::differentiate(const training::Examples& batch) {
  OwnTraining::differentiate(batch);
  for (const Tensor& p : gains(model())) set_grad(p, {});
}

void Misled::differentiate(const training::Examples& batch) {
  OwnTraining::differentiate(step_++ == kExchanged ? other_ : batch);
}

void Reversed::differentiate(const training::Examples& batch) {
  OwnTraining::differentiate(batch);
  if (step_++ != 1) return;
  NoGrad no_grad;
  for (const Tensor& p : model().parameters())
    if (const Tensor g = p.grad(); g.defined()) set_grad(p, -g);
}

}  // namespace isonorm::equivalence
