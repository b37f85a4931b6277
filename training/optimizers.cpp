#include "training/optimizers.h"

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
#include "training/options/rows.h"
#include "training/training_options.h"

namespace isonorm::training {
namespace {

using Made = std::unique_ptr<optim::Optimizer>;
using Parameters = std::vector<nn::NamedParameter>;

constexpr double kMomentum = 0.9;
constexpr double kAdafactorFloor = 1e-8;  // eps1 in f64

// Rate and decay of `o`; one group, or a second one for what is not decayed.
template <class Options>
std::vector<optim::ParameterGroup<Options>> groups(const TrainingOptions& o, const Parameters& parameters,
                                                   Options options = {}) {
  options.lr = o.lr, options.weight_decay = o.decay();
  Options undecayed = options;
  undecayed.weight_decay = 0;
  std::vector<optim::ParameterGroup<Options>> both = {{{}, options}, {{}, undecayed}};
  for (const nn::NamedParameter& named : parameters) {
    const Tensor& p = named.tensor;
    both[o.decay_matrices_only && p.rank() < 2 ? 1 : 0].parameters.push_back(p);
  }
  if (both[1].parameters.empty()) both.pop_back();
  return both;
}

template <class Optimizer, class Options> Made plain(const TrainingOptions& o, const Parameters& p) {
  return std::make_unique<Optimizer>(groups<Options>(o, p));
}

template <bool nesterov, bool decoupled> Made momentum(const TrainingOptions& o, const Parameters& p) {
  const optim::SgdOptions options{.momentum = kMomentum, .nesterov = nesterov, .decoupled = decoupled};
  return std::make_unique<optim::Sgd>(groups(o, p, options));
}

// In f64 the floor is far above rounding: a gradient that is zero in exact arithmetic (key biases) has entries of
// 1e-18, and with a floor of eps they would reach the size that all steps of their tensor are relative to: then the
// controls of the grid reach 1e-6 in 20 steps.
Made adafactor(const TrainingOptions& o, const Parameters& p) {
  optim::AdafactorOptions options;
  if (o.dtype == DType::f64) options.eps1 = kAdafactorFloor;
  return std::make_unique<optim::Adafactor>(groups(o, p, options));
}
std::string adafactor_note(DType dtype) {
  if (dtype != DType::f64) return "";
  return text("Adafactor runs with eps1 = ", kAdafactorFloor, " in f64 (its default is ",
              printed("%.1e", epsilon(dtype)),
              "): with the default, rounding in gradients that are zero in exact arithmetic (key biases) sets the size "
              "of their tensor's steps");
}

bool in_a_block(const std::string& name) {
  return name.starts_with("blocks.") || name.starts_with("encoder.") || name.starts_with("decoder.");
}

// The matrices inside the blocks go to Muon, the rest to AdamW or, `alone`, stays as it is. One rate fits both parts
// where Muon's is scaled to match AdamW's.
template <optim::MuonScale scale, bool alone> Made muon(const TrainingOptions& o, const Parameters& parameters) {
  std::vector<Tensor> matrices;
  Parameters rest;
  for (const nn::NamedParameter& p : parameters)
    if (p.tensor.rank() == 2 && in_a_block(p.name))
      matrices.push_back(p.tensor);
    else
      rest.push_back(p);
  const optim::MuonOptions inside{.lr = o.lr, .weight_decay = o.decay(), .scale = scale};
  if (alone) return std::make_unique<optim::Muon>(matrices, inside);
  return std::make_unique<optim::Muon>(std::vector<optim::ParameterGroup<optim::MuonOptions>>{{matrices, inside}},
                                       groups<optim::AdamWOptions>(o, rest));
}

using enum optim::MuonScale;
constexpr OptimizerRow kRows[] = {
    {.name = "sgd", .make = plain<optim::Sgd, optim::SgdOptions>},
    {.name = "momentum", .make = momentum<false, false>},
    {.name = "nesterov", .make = momentum<true, false>},
    {.name = "sgdw", .make = momentum<false, true>, .decoupled = true},
    {.name = "sign", .make = plain<optim::SignSgd, optim::SignSgdOptions>, .decoupled = true},
    {.name = "lion", .make = plain<optim::Lion, optim::LionOptions>, .decoupled = true},
    {.name = "rmsprop", .make = plain<optim::Rmsprop, optim::RmspropOptions>},
    {.name = "adagrad", .make = plain<optim::Adagrad, optim::AdagradOptions>},
    {.name = "adam", .make = plain<optim::Adam, optim::AdamOptions>},
    {.name = "adamw", .make = plain<optim::AdamW, optim::AdamWOptions>, .decoupled = true, .weight_decay = 0.01},
    {.name = "lamb", .make = plain<optim::Lamb, optim::LambOptions>, .decoupled = true},
    {.name = "lars", .make = plain<optim::Lars, optim::LarsOptions>},
    {.name = "adafactor", .make = adafactor, .decoupled = true, .note = adafactor_note},
    {.name = "muon", .make = muon<match_rms_adamw, false>, .decoupled = true},
    {.name = "muon_alone", .make = muon<match_rms_adamw, true>, .decoupled = true, .choice = false},
    {.name = "muon_shaped", .make = muon<original, true>, .decoupled = true, .choice = false},  // rate by shape
};

}  // namespace

std::span<const OptimizerRow> optimizers() { return kRows; }

const OptimizerRow& optimizer(std::string_view name) { return row_named(kRows, name, "optimizer"); }

std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& o,
                                                  const std::vector<nn::NamedParameter>& parameters) {
  std::unique_ptr<optim::Optimizer> made = o.optimizer->make(o, parameters);
  check(made != nullptr, "optimizer: the row ", o.optimizer->name, " made none");
  return made;
}

}  // namespace isonorm::training
