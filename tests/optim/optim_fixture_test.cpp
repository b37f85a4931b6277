// A small GPT trained by every optimizer for 100 steps against the same runs in PyTorch (tests/fixtures/torch_gpt.py),
// in f64: logits, gradients of the first step, every loss, and every parameter at the end.
#include "tests/optim/gpt.h"

#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/muon.h"
#include "optim/rmsprop.h"
#include "optim/schedule.h"
#include "optim/sgd.h"

using namespace isonorm;

namespace {

using Parameters = std::vector<Tensor>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const nn::Gpt&)>;

struct Run {
  const char* name;
  MakeOptimizer make;
  std::function<void(const Parameters&)> prepare{};  // changes the gradients before the step
  optim::Schedule schedule{};
};

template <class Optimizer, class Options> MakeOptimizer make(Options options) {
  return [options](const nn::Gpt& model) { return std::make_unique<Optimizer>(model.parameters(), options); };
}

MakeOptimizer sgd(optim::SgdOptions o) { return make<optim::Sgd>(o); }
MakeOptimizer adam(optim::AdamOptions o) { return make<optim::Adam>(o); }
MakeOptimizer adamw(optim::AdamWOptions o) { return make<optim::AdamW>(o); }
MakeOptimizer rmsprop(optim::RmspropOptions o) { return make<optim::Rmsprop>(o); }
MakeOptimizer adafactor(optim::AdafactorOptions o) { return make<optim::Adafactor>(o); }

// Muon for the matrices inside the blocks, AdamW for the rest.
MakeOptimizer muon(optim::MuonOptions options) {
  return [options](const nn::Gpt& model) {
    Parameters hidden, rest;
    for (const nn::NamedParameter& p : model.named_parameters())
      (p.name.starts_with("blocks.") && p.tensor.rank() == 2 ? hidden : rest).push_back(p.tensor);
    return std::make_unique<optim::Muon>(std::vector<optim::ParameterGroup<optim::MuonOptions>>{{hidden, options}},
                                         std::vector<optim::ParameterGroup<optim::AdamWOptions>>{
                                             {rest, {.lr = options.lr, .eps = 1e-6, .weight_decay = 0.1}}});
  };
}

constexpr optim::MuonScale kMatchRms = optim::MuonScale::match_rms_adamw;
const optim::Schedule kWarmupCosine{
    .peak = 1e-2, .warmup = 10, .steps = fixture::kSteps, .decay = optim::Decay::cosine};
const Run kRuns[] = {
    {"sgd", sgd({.lr = 0.1})},
    {"momentum", sgd({.lr = 0.05, .momentum = 0.9})},
    {"nesterov_l2", sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true})},
    {"dampening", sgd({.lr = 0.3, .momentum = 0.9, .dampening = 0.8})},
    {"l2_then_clip", sgd({.lr = 0.05, .momentum = 0.9}),
     [](const Parameters& p) {
       optim::add_l2(p, 1e-2);
       optim::clip_grad_norm(p, 0.5);
     }},
    {"clip_then_l2", sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-2}),
     [](const Parameters& p) { optim::clip_grad_norm(p, 0.5); }},
    {"adam", adam({.lr = 3e-3, .eps = 1e-6})},
    {"adam_l2", adam({.lr = 3e-3, .weight_decay = 1e-2})},
    {"adam_clip_value", adam({.lr = 3e-3, .eps = 1e-6}), [](const Parameters& p) { optim::clip_grad_value(p, 0.02); }},
    {"adamw", adamw({.lr = 3e-3, .eps = 1e-6, .weight_decay = 0.1})},
    {"adamw_clip_schedule", adamw({.lr = 1e-2, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1}),
     [](const Parameters& p) { optim::clip_grad_norm(p, 1.0); }, kWarmupCosine},
    {"rmsprop", rmsprop({.lr = 3e-3, .eps = 1e-6})},
    {"rmsprop_momentum", rmsprop({.lr = 1e-3, .alpha = 0.9, .eps = 1e-6, .momentum = 0.9})},
    {"rmsprop_centered", rmsprop({.lr = 1e-3, .alpha = 0.9, .eps = 1e-3, .centered = true})},
    {"rmsprop_all",
     rmsprop({.lr = 1e-3, .alpha = 0.9, .eps = 1e-3, .weight_decay = 1e-2, .momentum = 0.8, .centered = true})},
    {"adagrad",
     make<optim::Adagrad>(optim::AdagradOptions{.lr = 0.03, .lr_decay = 0.01, .weight_decay = 1e-3, .initial = 1e-3})},
    {"adafactor", adafactor({.lr = 0.02, .eps1 = 1e-5})},
    {"adafactor_decay",
     adafactor({.lr = 0.05, .beta2_decay = -0.6, .eps1 = 1e-5, .eps2 = 1e-2, .d = 1.5, .weight_decay = 0.1})},
    {"muon", muon({.lr = 5e-3})},
    {"muon_match_rms",
     muon({.lr = 5e-3, .momentum = 0.9, .weight_decay = 0, .nesterov = false, .scale = kMatchRms, .ns_steps = 4})},
    {"muon_spectral", muon({.lr = 5e-3, .scale = optim::MuonScale::spectral_unclamped})},
};

}  // namespace

TEST_CASE("a small GPT's logits and gradients equal PyTorch's") {
  nn::Gpt model = fixture::make_gpt();
  check_close(model(fixture::tokens(0, 0)), fixture::tensors().at("logits"), 1e-12);
  fixture::backward_of_step(model, 0);
  for (const nn::NamedParameter& p : model.named_parameters()) {
    INFO(p.name);
    check_close(p.tensor.grad(), fixture::tensors().at("gradient/" + p.name), 1e-12);
  }
}

TEST_CASE("100 steps of every optimizer end at PyTorch's weights", "[long]") {
  for (const Run& run : kRuns) {
    const std::string name = run.name;
    const std::vector<double> losses = fixture::tensors().at(name + "/losses").to_vector<double>();
    const std::vector<double> rates = fixture::tensors().at(name + "/lr").to_vector<double>();
    nn::Gpt model = fixture::make_gpt();
    const Parameters parameters = model.parameters();
    const auto optimizer = run.make(model);
    for (int step = 0; step < fixture::kSteps; ++step) {
      INFO(name << ", step " << step);
      if (run.schedule.steps) optimizer->set_lr(run.schedule.lr(step));
      // 1 + cos cancels near the end: a few ulp of the peak rate.
      CHECK(optimizer->lr() == Approx(rates[step]).epsilon(1e-14).margin(1e-17));
      optimizer->zero_grad();
      CHECK(fixture::backward_of_step(model, step) == Approx(losses[step]).epsilon(fixture::kTolerance));
      if (run.prepare) run.prepare(parameters);
      optimizer->step();
    }
    for (const nn::NamedParameter& p : model.named_parameters()) {
      INFO(name << ", " << p.name);
      check_close(p.tensor, fixture::tensors().at(name + "/step100/" + p.name), fixture::kTolerance);
    }
  }
}
