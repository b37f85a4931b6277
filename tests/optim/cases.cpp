#include "tests/optim/cases.h"

#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "optim/trust_ratio.h"

namespace isonorm {
namespace {

template <class Optimizer, class Options> auto make(Options options) {
  return [options](const std::vector<Tensor>& p) { return std::make_unique<Optimizer>(p, options); };
}
auto sgd(optim::SgdOptions o) { return make<optim::Sgd>(o); }
auto sign_sgd(optim::SignSgdOptions o) { return make<optim::SignSgd>(o); }
auto lion(optim::LionOptions o) { return make<optim::Lion>(o); }
auto rmsprop(optim::RmspropOptions o) { return make<optim::Rmsprop>(o); }
auto lars(optim::LarsOptions o) { return make<optim::Lars>(o); }
auto lamb(optim::LambOptions o) { return make<optim::Lamb>(o); }
auto adafactor(optim::AdafactorOptions o) { return make<optim::Adafactor>(o); }
auto adagrad(optim::AdagradOptions o) { return make<optim::Adagrad>(o); }
auto adam(optim::AdamOptions o) { return make<optim::Adam>(o); }
auto adamw(optim::AdamWOptions o) { return make<optim::AdamW>(o); }
// Muon for the matrices, AdamW for everything else.
std::unique_ptr<optim::Optimizer> muon(const std::vector<Tensor>& p) {
  std::vector<Tensor> matrices, rest;
  for (const Tensor& x : p) (x.rank() == 2 ? matrices : rest).push_back(x);
  return std::make_unique<optim::Muon>(std::vector<optim::ParameterGroup<optim::MuonOptions>>{{matrices, {}}},
                                       std::vector<optim::ParameterGroup<optim::AdamWOptions>>{{rest, {}}});
}

}  // namespace

const std::vector<OptimizerCase>& optimizer_cases() {
  using published::rule;
  static const std::vector<OptimizerCase> cases{
      {"sgd", sgd({}), rule(published::Sgd{})},
      {"sgd_l2", sgd({.weight_decay = 0.1}), rule(published::Sgd{.weight_decay = 0.1})},
      {"sgd_decoupled", sgd({.weight_decay = 0.1, .decoupled = true}),
       rule(published::Sgd{.weight_decay = 0.1, .decoupled = true})},
      {"momentum", sgd({.momentum = 0.9, .weight_decay = 0.1}),
       rule(published::Sgd{.momentum = 0.9, .weight_decay = 0.1})},
      {"momentum_decoupled", sgd({.momentum = 0.9, .weight_decay = 0.1, .dampening = 0.5, .decoupled = true}),
       rule(published::Sgd{.momentum = 0.9, .weight_decay = 0.1, .dampening = 0.5, .decoupled = true})},
      {"nesterov", sgd({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
       rule(published::Sgd{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true})},
      {"sign", sign_sgd({}), rule(published::Lion{.beta1 = 0, .beta2 = 0})},
      {"signum", sign_sgd({.momentum = 0.9, .weight_decay = 0.1}),
       rule(published::Lion{.beta1 = 0.9, .beta2 = 0.9, .weight_decay = 0.1})},
      {"lion", lion({.weight_decay = 0.1}), rule(published::Lion{.weight_decay = 0.1})},
      {"rmsprop", rmsprop({}), rule(published::Rmsprop{})},
      {"rmsprop_momentum", rmsprop({.momentum = 0.9}), rule(published::Rmsprop{.momentum = 0.9})},
      {"rmsprop_centered", rmsprop({.alpha = 0.8, .eps = 1e-2, .centered = true}),
       rule(published::Rmsprop{.alpha = 0.8, .eps = 1e-2, .centered = true})},
      {"rmsprop_all", rmsprop({.alpha = 0.8, .eps = 1e-2, .weight_decay = 0.1, .momentum = 0.9, .centered = true}),
       rule(published::Rmsprop{.alpha = 0.8, .eps = 1e-2, .weight_decay = 0.1, .momentum = 0.9, .centered = true})},
      {"adagrad", adagrad({}), rule(published::Adagrad{})},
      {"adagrad_all", adagrad({.lr_decay = 0.1, .weight_decay = 0.1, .initial = 0.5, .eps = 1e-3}),
       rule(published::Adagrad{.lr_decay = 0.1, .weight_decay = 0.1, .initial = 0.5, .eps = 1e-3})},
      {"adam", adam({}), rule(published::Adam{})},
      {"adam_l2", adam({.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1}),
       rule(published::Adam{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1})},
      {"adamw", adamw({}), rule(published::Adam{.weight_decay = 0.01, .decoupled = true})},
      {"adamw_all", adamw({.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3}),
       rule(published::Adam{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3, .decoupled = true})},
      {"lars", lars({}), rule(published::Lars{})},
      {"lars_all", lars({.momentum = 0.8, .weight_decay = 0.1, .trust = 0.02}),
       rule(published::Lars{.momentum = 0.8, .weight_decay = 0.1, .trust = 0.02})},
      {"lars_plain", lars({.weight_decay = 0.1, .adapt = false}),
       rule(published::Lars{.weight_decay = 0.1, .adapt = false})},
      {"lamb", lamb({}), rule(published::Lamb{})},
      {"lamb_all", lamb({.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3}),
       rule(published::Lamb{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3})},
      {"lamb_plain", lamb({.adapt = false}), rule(published::Lamb{.adapt = false})},
      {"adafactor", adafactor({.eps1 = 1e-5, .weight_decay = 0.1})},
      {"muon", muon},
  };
  return cases;
}

TensorMap with(const TensorMap& state, const std::string& name, const Tensor& t) {
  TensorMap all;
  for (const auto& [other, old] : state)
    if (other != name) all.add(other, old);
  if (t.defined()) all.add(name, t);
  return all;
}

}  // namespace isonorm
