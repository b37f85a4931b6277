// A step against its formula in plain loops, and what a loop calls when.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "nn/gpt.h"
#include "nn/residual/gpas.h"
#include "optim/sgd.h"
#include "core/system/warning.h"
#include "tests/support/catch.h"
#include "training/steps/loop.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

constexpr int kExamples = 6, kIn = 3, kOut = 2;
using Doubles = std::vector<double>;

// Half the squared error, a mean over the examples.
Tensor squared_error(nn::Module& model, const Examples& batch) {
  return sum(square(model(batch.inputs) - batch.targets)) * (0.5 / static_cast<double>(batch.targets.size(0)));
}

// y = x W^T without bias, in f64, with what is to be fitted.
struct Fit {
  Generator generator{3, 0};
  nn::Linear model{kIn, kOut, {.bias = false}};
  Examples batch;
  Fit() {
    model.to(DType::f64);
    batch = {randn({kExamples, kIn}, {DType::f64}, generator), randn({kExamples, kOut}, {DType::f64}, generator)};
  }
  Doubles weights() { return model.parameters()[0].to_vector<double>(); }
  double loss() {
    double loss = 0;
    gradient(&loss);
    return loss;
  }
  // Of the loss, by the formula: sum over examples of (W x - t) x^T / n.
  Doubles gradient(double* loss = nullptr) {
    const Doubles w = weights(), x = batch.inputs.to_vector<double>(), t = batch.targets.to_vector<double>();
    Doubles g(kIn * kOut);
    for (int n = 0; n < kExamples; ++n)
      for (int o = 0; o < kOut; ++o) {
        double error = -t[n * kOut + o];
        for (int i = 0; i < kIn; ++i) error += w[o * kIn + i] * x[n * kIn + i];
        if (loss) *loss += error * error / (2 * kExamples);
        for (int i = 0; i < kIn; ++i) g[o * kIn + i] += error * x[n * kIn + i] / kExamples;
      }
    return g;
  }
};

double norm_of(const Doubles& v) {
  double squares = 0;
  for (double x : v) squares += x * x;
  return std::sqrt(squares);
}

// Sums of some 20 terms of size 1 to 10.
void check_close(const Doubles& found, const Doubles& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 200 * epsilon(DType::f64));
}

}  // namespace

TEST_CASE("step: the update is the formula's, under each limit on gradients and in parts") {
  const double rate = 0.25;
  for (const int64_t parts : {1, 2, 3})
    for (const GradientLimits& limits :
         {GradientLimits{}, GradientLimits{.norm = 0.1}, GradientLimits{.norm = 1e6}, GradientLimits{.value = 0.2},
          GradientLimits{.l2 = 0.5}, GradientLimits{.l2 = 0.5, .value = 0.3, .norm = 0.4}}) {
      Fit fit;
      optim::Sgd sgd(fit.model.parameters(), {.lr = 1});
      Step step(fit.model, sgd, squared_error, {.limits = limits, .accumulate = parts});
      const double loss = fit.loss();
      Doubles expected = fit.weights(), g = fit.gradient();
      for (size_t i = 0; i < g.size(); ++i) {
        g[i] += limits.l2 * expected[i];
        if (limits.value > 0) g[i] = std::clamp(g[i], -limits.value, limits.value);
      }
      const double norm = norm_of(g);
      const double scale = limits.norm > 0 ? std::min(1.0, limits.norm / (norm + 1e-6)) : 1;
      for (size_t i = 0; i < g.size(); ++i) expected[i] -= rate * scale * g[i];
      const StepResult r = step(fit.batch, rate);
      INFO(parts << " parts, l2 " << limits.l2 << ", value " << limits.value << ", norm " << limits.norm);
      check_close(fit.weights(), expected);
      check_close({r.loss}, {loss});
      CHECK(r.gradient_norm.has_value() == (limits.norm > 0));
      if (r.gradient_norm) check_close({*r.gradient_norm}, {norm});
      CHECK(sgd.lr() == rate);
    }
}

TEST_CASE("step: in parts a target that is ignored weighs nothing, as in the whole batch") {
  const auto run = [](int64_t parts) {
    Generator g{4, 0};
    nn::Linear model(kIn, 3, {.bias = false});
    model.to(DType::f64);
    copy_into(model.weight, randn({3, kIn}, {DType::f64}, g));
    // Counted targets: in parts of two rows 1, 2 and 1; in parts of three rows 2 and 2.
    const std::vector<int64_t> targets = {0, -100, 2, 1, -100, 1};
    const Examples batch{randn({6, kIn}, {DType::f64}, g), from_vector(targets, {6})};
    optim::Sgd sgd(model.parameters(), {.lr = 1});
    Step step(model, sgd, cross_entropy_of, {.accumulate = parts});
    const double loss = step(batch, 0.25).loss;
    Doubles all = model.weight.to_vector<double>();
    all.push_back(loss);
    return all;
  };
  for (const int64_t parts : {2, 3}) check_close(run(parts), run(1));
}

TEST_CASE("step: a smoothed loss combines the target's share and all classes' share") {
  nn::Linear model(2, 3, {.bias = false});
  model.to(DType::f64);
  copy_into(model.weight, from_vector(Doubles{1, 0, 0, 1, 0, 0}, {3, 2}));
  const Examples batch{from_vector(Doubles{0.5, -1}, {1, 2}), from_vector(std::vector<int64_t>{1}, {1})};
  const double logits[] = {0.5, -1, 0}, total = std::log(std::exp(0.5) + std::exp(-1) + 1);
  for (const double share : {0.0, 0.25}) {
    double expected = (1 - share) * (total - logits[1]);
    for (const double x : logits) expected += share / 3 * (total - x);
    CHECK(smoothed_cross_entropy(share)(model, batch).item() == Approx(expected).epsilon(1e-14));
  }
  CHECK_THROWS_WITH(smoothed_cross_entropy(2)(model, batch), Catch::Matchers::Contains("label smoothing 2"));
}

TEST_CASE("step: the gates of GPAS have their own limit, before the limit of all") {
  manual_seed(8);
  const nn::TransformerOptions t{.width = 8,
                                 .depth = 3,
                                 .heads = 2,
                                 .mlp_width = 16,
                                 .activation = nn::Activation::swiglu,
                                 .connection = nn::kPreGpas};
  nn::Gpt model({.vocab = 9, .context = 5, .transformer = t});
  model.to(DType::f64);
  const Examples batch{randint(0, 9, {4, 5}), randint(0, 9, {4, 5})};
  const auto squares_of = [](const std::vector<Tensor>& parameters, auto&& of) {
    double squares = 0;
    for (const Tensor& p : parameters) squares += sum(square(of(p))).item();
    return squares;
  };
  const auto gradient_of = [](const Tensor& p) { return p.grad(); };
  differentiate(model, cross_entropy_of, batch);
  const std::vector<Tensor> gates = nn::gates(model);
  REQUIRE(gates.size() == 3);
  const double norm = std::sqrt(squares_of(gates, gradient_of)),
               rest = squares_of(model.parameters(), gradient_of) - norm * norm, limit = norm / 5;
  std::vector<double> before;
  for (const Tensor& g : gates) before.push_back(g.item());
  // Each factor is limit / (norm + 1e-6), as clip_grad_norm has it.
  const double factor = limit / (norm + 1e-6), all = std::sqrt(rest + factor * factor * norm * norm);
  const double lr = 0.5, most = all / 2, last = most / (all + 1e-6);
  optim::Sgd sgd(model.parameters(), {.lr = lr});
  Step step(model, sgd, cross_entropy_of, {.limits = {.gates = limit, .norm = most}});
  std::vector<double> g;
  for (const Tensor& t : gates) g.push_back(t.grad().item());
  const StepResult r = step(batch);
  CHECK(r.gradient_norm.value() == Approx(all).epsilon(1e-13));
  for (size_t i = 0; i < gates.size(); ++i)
    CHECK(gates[i].item() == Approx(before[i] - lr * g[i] * factor * last).epsilon(1e-13));
  CHECK(nn::gates(nn::Linear(2, 2)).empty());
}

TEST_CASE("step: the gradients of a step before do not count, and stay what they were where they are limited") {
  Fit fit;
  optim::Sgd sgd(fit.model.parameters(), {.lr = 0.5});
  for (int i = 0; i < 2; ++i) differentiate(fit.model, squared_error, fit.batch);  // no optimizer takes them away
  check_close(fit.model.parameters()[0].grad().to_vector<double>(), fit.gradient());
  Step step(fit.model, sgd, squared_error, {.limits = {.value = 1e-3}});
  step.differentiate(fit.batch);
  step.differentiate(fit.batch);
  const Tensor g = fit.model.parameters()[0].grad();
  check_close(g.to_vector<double>(), fit.gradient());
  const Doubles before = g.to_vector<double>();
  step.update();
  CHECK(g.to_vector<double>() == before);
  CHECK(sgd.lr() == 0.5);
}

TEST_CASE("step: an update of the user's gets the scale of the gradients") {
  Fit fit;
  optim::Sgd sgd(fit.model.parameters(), {.lr = 1});
  double scale = 0;
  Step step(fit.model, sgd, squared_error, {.limits = {.norm = 1e-3}, .apply = [&](double s) { scale = s; }});
  const Doubles before = fit.weights();
  const StepResult r = step(fit.batch);
  CHECK(fit.weights() == before);
  CHECK(scale == 1e-3 / (*r.gradient_norm + 1e-6));
}

TEST_CASE("step: parts, limits, an optimizer and a loss that are none are refused") {
  Fit fit, other;
  optim::Sgd sgd(fit.model.parameters(), {.lr = 1});
  for (const int64_t parts : {-1, 0, 4, 7})
    CHECK_THROWS_WITH(Step(fit.model, sgd, squared_error, {.accumulate = parts})(fit.batch),
                      Contains(text("6 examples in ", parts, " parts")));
  CHECK_THROWS_WITH(Step(other.model, sgd, squared_error),
                    Contains("step: none of the 1 parameters of sgd is one of the model's 1"));
  const auto of_another = [&](nn::Module&, const Examples& batch) { return squared_error(other.model, batch); };
  CHECK_THROWS_WITH(Step(fit.model, sgd, of_another)(fit.batch),
                    Contains("step: none of the 1 parameters of sgd has a gradient"));
  for (const double wrong : {-1.0, std::nan("")})
    for (const GradientLimits& limits :
         {GradientLimits{.l2 = wrong}, GradientLimits{.value = wrong}, GradientLimits{.norm = wrong}})
      CHECK_THROWS_WITH(limit_gradients(limits, fit.model.parameters()), Contains("expected 0 or more"));
}

TEST_CASE("loop: batches and rates belong to the step; callbacks come in order, every n steps, and stop it") {
  Fit fit;
  optim::Sgd sgd(fit.model.parameters(), {.lr = 1});
  Step step(fit.model, sgd, squared_error);
  std::vector<int64_t> batches;
  std::string calls;
  Loop loop(
      step, [&](int64_t t) { return batches.push_back(t), fit.batch; }, [](int64_t t) { return 1e-3 * (t + 1); });
  double last = 0;
  loop.every(1, [&](const TrainingStep& s) {
    CHECK(s.lr == 1e-3 * s.step);
    CHECK(sgd.lr() == s.lr);
    CHECK(s.seconds >= last);
    CHECK_FALSE(s.gradient_norm.has_value());
    last = s.seconds;
    calls += text(s.step);
    return s.step != 7;
  });
  loop.every(2, [&](const TrainingStep&) { return calls += "b", true; });
  loop.every(0, [&](const TrainingStep&) { return calls += "never", false; });
  CHECK(loop.run(5));
  CHECK(calls == "12b34b5");
  CHECK(batches == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK_FALSE(loop.run(20, 5));
  CHECK(calls == "12b34b56b7");
  CHECK(loop.run(8, 7));
  CHECK(calls == "12b34b56b78b");
  CHECK(loop.run(8, 8));
  CHECK(batches.size() == 8);
  CHECK_THROWS_WITH(loop.every(-1, {}), Contains("every -1 steps"));
}

TEST_CASE("loop: a loss that is not finite stops it, with the step and the tensor") {
  Fit fit;
  optim::Sgd sgd(fit.model.parameters(), {.lr = 1e-3});
  Step step(fit.model, sgd, squared_error);
  Examples bad = fit.batch;
  bad.inputs = bad.inputs * NAN;
  int seen = 0;
  const auto at = [&](const Examples& third) {
    return [&fit, third](int64_t t) { return t == 2 ? third : fit.batch; };
  };
  const auto rate = [](int64_t) { return 1e-3; };
  Loop loop(step, at(bad), rate);
  loop.every(1, [&](const TrainingStep& s) { return seen = s.step, true; });
  CHECK_THROWS_WITH(loop.run(5),
                    "loop: step 3: the loss is nan: the inputs of the batch are not finite; an AnomalyMode "
                    "names the op that makes the first NaN");
  CHECK(seen == 2);
  Fit again;
  optim::Sgd other(again.model.parameters(), {.lr = 1e-3});
  Step large(again.model, other, squared_error, {.limits = {.norm = 1}});
  copy_into(again.model.parameters()[0], full_like(again.model.parameters()[0], INFINITY));
  Loop overflows(
      large, [&](int64_t) { return again.batch; }, rate);
  CHECK_THROWS_WITH(overflows.run(1), Contains("loop: step 1: the loss is ") && Contains("the gradient of "));
  Loop goes_on(large, [&](int64_t) { return again.batch; }, rate, {.stop_at_nan = false});
  CHECK(goes_on.run(2));
}

TEST_CASE("step: a model in evaluation mode is warned of once") {
  std::vector<std::string> lines;
  const WarningHandler before = set_warning_handler([&](const std::string& line) { lines.push_back(line); });
  Fit fit;
  fit.model.eval();
  optim::Sgd sgd(fit.model.parameters(), {.lr = 1e-3});
  Step step(fit.model, sgd, squared_error);
  step(fit.batch), step(fit.batch);
  set_warning_handler(before);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("the model is in evaluation mode"));
}
