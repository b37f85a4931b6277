#include "training/optimizers.h"

#include "autograd/engine.h"
#include "core/printed.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"

namespace isonorm::training {
namespace {

constexpr double kMomentum = 0.9;
constexpr double kAdafactorFloor = 1e-8;  // eps1 in f64

optim::SgdOptions sgd_options(const TrainingOptions& o) {
  const OptimizerKind kind = o.optimizer;
  return {.lr = o.lr,
          .momentum = kind == OptimizerKind::sgd ? 0 : kMomentum,
          .weight_decay = o.decay(),
          .nesterov = kind == OptimizerKind::nesterov,
          .decoupled = kind == OptimizerKind::sgdw};
}

// In f64 the floor is far above rounding: a gradient that is zero in exact arithmetic (key biases) has entries of
// 1e-18, and with a floor of eps they would reach the size that all steps of their tensor are relative to: then the
// controls of the grid reach 1e-6 in 20 steps.
optim::AdafactorOptions adafactor_options(const TrainingOptions& o) {
  optim::AdafactorOptions options{.lr = o.lr, .weight_decay = o.decay()};
  if (o.dtype == DType::f64) options.eps1 = kAdafactorFloor;
  return options;
}

// One group, or a second one for what is not decayed.
template <class Options>
std::vector<optim::ParameterGroup<Options>> groups(const TrainingOptions& o, const std::vector<Tensor>& parameters,
                                                   const Options& options) {
  Options undecayed = options;
  undecayed.weight_decay = 0;
  std::vector<optim::ParameterGroup<Options>> both = {{{}, options}, {{}, undecayed}};
  for (const Tensor& p : parameters) both[o.decay_matrices_only && p.rank() < 2 ? 1 : 0].parameters.push_back(p);
  if (both[1].parameters.empty()) both.pop_back();
  return both;
}

// The matrices inside the blocks go to Muon. One rate fits both parts where Muon's is scaled to match AdamW's.
std::unique_ptr<optim::Optimizer> muon(const TrainingOptions& o, const std::vector<nn::Parameter>& parameters) {
  std::vector<Tensor> matrices, rest;
  for (const nn::Parameter& p : parameters)
    (p.tensor.rank() == 2 && p.name.starts_with("blocks.") ? matrices : rest).push_back(p.tensor);
  const optim::MuonScale scale =
      o.optimizer == OptimizerKind::muon_shaped ? optim::MuonScale::original : optim::MuonScale::match_rms_adamw;
  const optim::MuonOptions inside{.lr = o.lr, .weight_decay = o.decay(), .scale = scale};
  if (o.optimizer != OptimizerKind::muon) return std::make_unique<optim::Muon>(matrices, inside);
  return std::make_unique<optim::Muon>(std::vector<optim::ParameterGroup<optim::MuonOptions>>{{matrices, inside}},
                                       groups(o, rest, optim::AdamWOptions{.lr = o.lr, .weight_decay = o.decay()}));
}

template <class O, class Options>
std::unique_ptr<optim::Optimizer> over(const TrainingOptions& o, const std::vector<Tensor>& parameters,
                                       const Options& options) {
  return std::make_unique<O>(groups(o, parameters, options));
}

}  // namespace

std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& o,
                                                  const std::vector<nn::Parameter>& parameters) {
  std::vector<Tensor> all;
  for (const nn::Parameter& p : parameters) all.push_back(p.tensor);
  const double lr = o.lr, decay = o.decay();
  switch (o.optimizer) {
    case OptimizerKind::sgd:
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov:
    case OptimizerKind::sgdw:
      return over<optim::Sgd>(o, all, sgd_options(o));
    case OptimizerKind::sign:
      return over<optim::SignSgd>(o, all, optim::SignSgdOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::lion:
      return over<optim::Lion>(o, all, optim::LionOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::rmsprop:
      return over<optim::Rmsprop>(o, all, optim::RmspropOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::adagrad:
      return over<optim::Adagrad>(o, all, optim::AdagradOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::adam:
      return over<optim::Adam>(o, all, optim::AdamOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::adamw:
      return over<optim::AdamW>(o, all, optim::AdamWOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::lamb:
      return over<optim::Lamb>(o, all, optim::LambOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::lars:
      return over<optim::Lars>(o, all, optim::LarsOptions{.lr = lr, .weight_decay = decay});
    case OptimizerKind::adafactor:
      return over<optim::Adafactor>(o, all, adafactor_options(o));
    case OptimizerKind::muon:
    case OptimizerKind::muon_alone:
    case OptimizerKind::muon_shaped:
      return muon(o, parameters);
  }
  return nullptr;
}

std::string optimizer_note(OptimizerKind optimizer, DType dtype) {
  if (optimizer != OptimizerKind::adafactor || dtype != DType::f64) return "";
  return text(
      "Adafactor runs with eps1 = ", kAdafactorFloor, " in f64 (its default is ", printed("%.1e", epsilon(dtype)),
      "): with the default, rounding in gradients that are zero in exact arithmetic (key biases) sets the size of "
      "their tensor's steps");
}

}  // namespace isonorm::training
