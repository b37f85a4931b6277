// A small GPT trained for 100 steps by the optimizers that PyTorch does not have, in f64: against a second model with
// the same start whose weights follow the published rule, one number at a time.
#include "tests/optim/gpt.h"

#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lion.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "tests/optim/cases.h"

using namespace isonorm;

namespace {

// The rules that take a sign of the gradient make whole steps of rounding noise. The one place where a gradient of this
// model is nothing but noise are its key biases, which no output depends on: there they are not compared.
const std::vector<OptimizerCase> kRuns{
    {"sgd_decoupled",
     [](const auto& p) {
       return std::make_unique<optim::Sgd>(
           p, optim::SgdOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .decoupled = true});
     },
     rule(published::Sgd{.momentum = 0.9, .weight_decay = 0.1, .decoupled = true})},
    {"sign", [](const auto& p) { return std::make_unique<optim::SignSgd>(p, optim::SignSgdOptions{.lr = 2e-3}); },
     rule(published::SignSgd{})},
    {"signum",
     [](const auto& p) {
       return std::make_unique<optim::SignSgd>(p,
                                               optim::SignSgdOptions{.lr = 2e-3, .momentum = 0.9, .weight_decay = 0.1});
     },
     rule(published::SignSgd{.momentum = 0.9, .weight_decay = 0.1})},
    {"lion",
     [](const auto& p) {
       return std::make_unique<optim::Lion>(p, optim::LionOptions{.lr = 2e-3, .weight_decay = 0.1});
     },
     rule(published::Lion{.weight_decay = 0.1})},
    {"lars",
     [](const auto& p) {
       return std::make_unique<optim::Lars>(p, optim::LarsOptions{.lr = 1, .weight_decay = 1e-2, .trust = 2e-2});
     },
     rule(published::Lars{.weight_decay = 1e-2, .trust = 2e-2})},
    {"lamb", [](const auto& p) { return std::make_unique<optim::Lamb>(p, optim::LambOptions{.lr = 1e-2}); },
     rule(published::Lamb{})},
};

}  // namespace

TEST_CASE("100 steps on a small GPT follow the published rules") {
  for (const OptimizerCase& run : kRuns) {
    nn::Gpt model = fixture::make_gpt(), other = fixture::make_gpt();
    const auto optimizer = run.make(model.parameters());
    const auto names = model.named_parameters();
    const auto theirs = other.parameters();
    std::vector<published::Rule> rules(theirs.size(), run.rule);
    double first = 0, last = 0;
    for (int step = 0; step < fixture::kSteps; ++step) {
      INFO(run.name << ", step " << step);
      optimizer->zero_grad();
      last = fixture::backward_of_step(model, step);
      if (step == 0) first = last;
      optimizer->step();
      for (const Tensor& w : theirs) set_grad(w, {});
      CHECK(fixture::backward_of_step(other, step) == Approx(last).epsilon(fixture::kTolerance));
      for (size_t i = 0; i < theirs.size(); ++i) {
        std::vector<double> w = theirs[i].to_vector<double>();
        rules[i](w, theirs[i].grad().to_vector<double>(), optimizer->lr());
        copy_into(detach(theirs[i]), from_vector(w, theirs[i].shape()));
      }
    }
    CHECK(last < 0.8 * first);
    for (size_t i = 0; i < theirs.size(); ++i) {
      const nn::NamedParameter& p = names[i];
      INFO(run.name << ", " << p.name);
      CHECK(fixture::deviation(p.tensor, theirs[i], p.blind_begin, p.blind_end) <= fixture::kTolerance);
    }
  }
}
