#include "training/optimizers.h"

#include <algorithm>
#include <sstream>

#include "core/printed.h"
#include "core/system/name_pattern.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "optim/trust_ratio.h"
#include "training/options/option.h"
#include "training/options/rows.h"
#include "training/training_options.h"

namespace isonorm::training {
namespace {

using Made = std::unique_ptr<optim::Optimizer>;
using Parameters = std::vector<nn::NamedParameter>;

constexpr double kMomentum = 0.9;
constexpr double kAdafactorFloor = 1e-8;  // eps1 in f64

// The tuning options (betas, momentum, eps) that `Options` has, with their values.
template <class Options> constexpr Tuning tuning_of(const Options& o) {
  Tuning t;
  if constexpr (requires { o.beta1; }) t.beta1 = o.beta1, t.beta2 = o.beta2;
  if constexpr (requires { o.momentum; }) t.momentum = o.momentum;
  if constexpr (requires { o.eps; }) t.eps = o.eps;
  return t;
}

template <class Options> void tune(Options& o, const Tuning& t) {
  if constexpr (requires { o.beta1; }) o.beta1 = t.beta1.value_or(o.beta1), o.beta2 = t.beta2.value_or(o.beta2);
  if constexpr (requires { o.momentum; }) o.momentum = t.momentum.value_or(o.momentum);
  if constexpr (requires { o.eps; }) o.eps = t.eps.value_or(o.eps);
}

std::vector<std::string> patterns(const std::string& listed) {
  std::vector<std::string> all;
  std::istringstream in(listed);
  for (std::string one; std::getline(in, one, ',');) all.push_back(one);
  return all;
}

bool matches(const std::string& pattern, const nn::NamedParameter& p) {
  std::vector<std::string> stars;
  return names::matches(pattern, p.name, stars);
}

// Parameter groups with the rate, decay and settings of `o`: one, or two if some parameters are not decayed.
template <class Options>
std::vector<optim::ParameterGroup<Options>> groups(const TrainingOptions& o, const Parameters& parameters,
                                                   Options options = {}) {
  options.lr = o.lr, options.weight_decay = o.decay();
  tune(options, o.tuning);
  Options undecayed = options;
  undecayed.weight_decay = 0;
  std::vector<optim::ParameterGroup<Options>> both = {{{}, options}, {{}, undecayed}};
  const std::vector<std::string> undecaying = patterns(o.no_decay);
  for (const nn::NamedParameter& p : parameters) {
    const bool none = (o.decay_matrices_only && p.tensor.rank() < 2) ||
                      std::ranges::any_of(undecaying, [&](const std::string& s) { return matches(s, p); });
    both[none ? 1 : 0].parameters.push_back(p.tensor);
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

// In f64 the floor is far above rounding. A gradient that is zero in exact arithmetic (key biases) has entries of
// 1e-18. With a floor of eps such entries would set the scale of every step of their tensor, and the
// grid's controls would reach 1e-6 in 20 steps.
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

// Muon for the matrices inside the blocks. The rest goes to AdamW or, if `alone`, is not trained. One rate fits both
// parts if Muon's is scaled to match AdamW's.
template <optim::MuonScale scale, bool alone> Made muon(const TrainingOptions& o, const Parameters& parameters) {
  Parameters matrices, rest;
  for (const nn::NamedParameter& p : parameters)
    if (p.tensor.rank() == 2 && in_a_block(p.name))
      matrices.push_back(p);
    else
      rest.push_back(p);
  TrainingOptions inside = o;
  inside.tuning = {.momentum = o.tuning.momentum};  // the option eps belongs to AdamW
  return std::make_unique<optim::Muon>(
      groups(inside, matrices, optim::MuonOptions{.scale = scale}),
      alone ? std::vector<optim::ParameterGroup<optim::AdamWOptions>>() : groups<optim::AdamWOptions>(o, rest));
}
constexpr Tuning kOfMuon = {.momentum = optim::MuonOptions{}.momentum};

using enum optim::MuonScale;
constexpr OptimizerRow kRows[] = {
    {.name = "sgd", .make = plain<optim::Sgd, optim::SgdOptions>, .tuning = tuning_of(optim::SgdOptions{})},
    {.name = "momentum", .make = momentum<false, false>, .tuning = {.momentum = kMomentum}},
    {.name = "nesterov", .make = momentum<true, false>, .tuning = {.momentum = kMomentum}},
    {.name = "sgdw", .make = momentum<false, true>, .decoupled = true, .tuning = {.momentum = kMomentum}},
    {.name = "sign",
     .make = plain<optim::SignSgd, optim::SignSgdOptions>,
     .decoupled = true,
     .tuning = tuning_of(optim::SignSgdOptions{})},
    {.name = "lion",
     .make = plain<optim::Lion, optim::LionOptions>,
     .decoupled = true,
     .tuning = tuning_of(optim::LionOptions{})},
    {.name = "rmsprop",
     .make = plain<optim::Rmsprop, optim::RmspropOptions>,
     .tuning = tuning_of(optim::RmspropOptions{})},
    {.name = "adagrad",
     .make = plain<optim::Adagrad, optim::AdagradOptions>,
     .tuning = tuning_of(optim::AdagradOptions{})},
    {.name = "adam", .make = plain<optim::Adam, optim::AdamOptions>, .tuning = tuning_of(optim::AdamOptions{})},
    {.name = "adamw",
     .make = plain<optim::AdamW, optim::AdamWOptions>,
     .decoupled = true,
     .weight_decay = 0.01,
     .tuning = tuning_of(optim::AdamWOptions{})},
    {.name = "lamb",
     .make = plain<optim::Lamb, optim::LambOptions>,
     .decoupled = true,
     .tuning = tuning_of(optim::LambOptions{})},
    {.name = "lars", .make = plain<optim::Lars, optim::LarsOptions>, .tuning = tuning_of(optim::LarsOptions{})},
    {.name = "adafactor", .make = adafactor, .decoupled = true, .note = adafactor_note},
    {.name = "muon",
     .make = muon<match_rms_adamw, false>,
     .decoupled = true,
     .tuning = kOfMuon.over(tuning_of(optim::AdamWOptions{}))},
    {.name = "muon_alone", .make = muon<match_rms_adamw, true>, .decoupled = true, .choice = false, .tuning = kOfMuon},
    {.name = "muon_shaped",
     .make = muon<original, true>,
     .decoupled = true,
     .choice = false,
     .tuning = kOfMuon},  // its rate depends on the shape
};

}  // namespace

std::span<const OptimizerRow> optimizers() { return kRows; }

const OptimizerRow& optimizer(std::string_view name) { return row_named(kRows, name, "optimizer"); }

std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& o,
                                                  const std::vector<nn::NamedParameter>& parameters) {
  for (const std::string& pattern : patterns(o.no_decay))
    check(std::ranges::any_of(parameters, [&](const nn::NamedParameter& p) { return matches(pattern, p); }),
          "no_decay: no parameter is called '", pattern, "'");
  for (const auto& [name, tuned, taken] : {std::tuple{"beta1", &o.tuning.beta1, &o.optimizer->tuning.beta1},
                                           {"beta2", &o.tuning.beta2, &o.optimizer->tuning.beta2},
                                           {"momentum", &o.tuning.momentum, &o.optimizer->tuning.momentum},
                                           {"optimizer_eps", &o.tuning.eps, &o.optimizer->tuning.eps}})
    check(!*tuned || *taken, word_of(name), ": the optimizer ", o.optimizer->name, " does not have this setting");
  std::unique_ptr<optim::Optimizer> made = o.optimizer->make(o, parameters);
  check(made != nullptr, "optimizer: make() of the row ", o.optimizer->name, " returned null");
  return made;
}

}  // namespace isonorm::training
