// A small GPT trained by every optimizer for 100 steps against the same runs in PyTorch (tests/fixtures/torch_gpt.py),
// in f64: logits, gradients of the first step, every loss, and every parameter after 1, 10 and 100 steps.
#include "tests/support/catch.h"

#include <cmath>
#include <functional>

#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/shape.h"
#include "io/safetensors.h"
#include "nn/gpt.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "optim/sgd.h"

using namespace isonorm;

namespace {

// PyTorch's own run, started one ulp away, ends within 2e-12 of itself: 1e-10 leaves room for another order of
// summation only.
constexpr double kTolerance = 1e-10;
constexpr int kSteps = 100;

using Parameters = std::vector<Tensor>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)>;

struct Run {
  const char* name;
  MakeOptimizer make;
  double max_norm = 0;  // of the gradient; 0: not clipped
  optim::Schedule schedule{};
};

template <class Optimizer, class Options> MakeOptimizer make(Options options) {
  return [options](const Parameters& p) { return std::make_unique<Optimizer>(p, options); };
}

const optim::Schedule kWarmupCosine{.peak = 1e-2, .warmup = 10, .steps = kSteps, .decay = optim::Decay::cosine};
const Run kRuns[] = {
    {"sgd", make<optim::Sgd>(optim::SgdOptions{.lr = 0.1})},
    {"momentum", make<optim::Sgd>(optim::SgdOptions{.lr = 0.05, .momentum = 0.9})},
    {"nesterov_l2",
     make<optim::Sgd>(optim::SgdOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true})},
    {"adam", make<optim::Adam>(optim::AdamOptions{.lr = 3e-3, .eps = 1e-6})},
    {"adam_l2", make<optim::Adam>(optim::AdamOptions{.lr = 3e-3, .weight_decay = 1e-2})},
    {"adamw", make<optim::AdamW>(optim::AdamWOptions{.lr = 3e-3, .eps = 1e-6, .weight_decay = 0.1})},
    {"adamw_clip_schedule",
     make<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1}), 1.0,
     kWarmupCosine},
};

const TensorMap& fixture() {
  static const TensorMap all = load_safetensors("tests/fixtures/optim_gpt.safetensors");
  return all;
}

// max |ours - theirs| / max |theirs|; a NaN of ours is kept.
double deviation(const Tensor& ours, const Tensor& theirs) {
  REQUIRE(ours.shape() == theirs.shape());
  const std::vector<double> a = ours.to_vector<double>(), b = theirs.to_vector<double>();
  double largest = 0, worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    const double d = std::abs(a[i] - b[i]);
    worst = d <= worst ? worst : d;
  }
  return worst / largest;
}

// The model of the fixture with its initial weights, which must have exactly the names that ours has.
nn::Gpt make_model() {
  nn::Gpt model({.vocab = 13,
                 .context = 6,
                 .transformer = {.width = 8, .depth = 2, .heads = 2, .mlp_width = 16, .affine = true}});
  model.to(DType::f64);
  TensorMap initial;
  const std::string prefix = "initial/";
  for (const auto& [name, tensor] : fixture())
    if (name.starts_with(prefix)) initial.add(name.substr(prefix.size()), tensor);
  model.load_state_dict(initial);
  return model;
}

// Ids [4, 6] that a step reads (first = 0) or predicts (first = 1).
Tensor tokens(int step, int64_t first) {
  return contiguous(narrow(select(fixture().at("tokens"), 0, step), 1, first, 6));
}

double backward_of_step(nn::Gpt& model, int step) {
  const Tensor loss = cross_entropy(model(tokens(step, 0)), tokens(step, 1));
  backward(loss);
  return loss.item();
}

void compare_weights(const nn::Gpt& model, const std::string& at) {
  for (const nn::Parameter& p : model.named_parameters()) {
    INFO(at << "/" << p.name);
    CHECK(deviation(p.tensor, fixture().at(at + "/" + p.name)) <= kTolerance);
  }
}

}  // namespace

TEST_CASE("a small GPT's logits and gradients equal PyTorch's") {
  nn::Gpt model = make_model();
  CHECK(deviation(model(tokens(0, 0)), fixture().at("logits")) <= 1e-12);
  backward_of_step(model, 0);
  for (const nn::Parameter& p : model.named_parameters()) {
    INFO(p.name);
    CHECK(deviation(gradient(p.tensor), fixture().at("gradient/" + p.name)) <= 1e-12);
  }
}

TEST_CASE("100 steps of every optimizer end at PyTorch's weights") {
  for (const Run& run : kRuns) {
    const std::string name = run.name;
    const std::vector<double> losses = fixture().at(name + "/losses").to_vector<double>();
    const std::vector<double> rates = fixture().at(name + "/lr").to_vector<double>();
    nn::Gpt model = make_model();
    const Parameters parameters = model.parameters();
    const auto optimizer = run.make(parameters);
    for (int step = 0; step < kSteps; ++step) {
      INFO(name << ", step " << step);
      if (run.schedule.steps) optimizer->set_lr(run.schedule.lr(step));
      // 1 + cos cancels near the end: a few ulp of the peak rate.
      CHECK(optimizer->lr() == Approx(rates[step]).epsilon(1e-14).margin(1e-17));
      optimizer->zero_grad();
      CHECK(backward_of_step(model, step) == Approx(losses[step]).epsilon(kTolerance));
      if (run.max_norm > 0) optim::clip_grad_norm(parameters, run.max_norm);
      optimizer->step();
      if (const int done = step + 1; done == 1 || done == 10 || done == kSteps)
        compare_weights(model, name + "/step" + std::to_string(done));
    }
  }
}
