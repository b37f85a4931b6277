// Numbers of an optimizer that options set, and parameters that do not decay, against the formulas in plain loops.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/reduce.h"
#include "core/error.h"
#include "nn/linear.h"
#include "tests/support/catch.h"
#include "training/training_options.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

using Doubles = std::vector<double>;

constexpr int kSteps = 3;
constexpr double kRate = 0.1, kDecay = 0.5;

// A weight [1, 2] and a bias [1], behind three steps t = 1, 2, 3 in which the gradients are t, 2 t and 1.
struct Trained {
  Doubles before, after;
  explicit Trained(const TrainingOptions& o) {
    nn::Linear model(2, 1);
    model.to(DType::f64);
    const auto all = [&] {
      Doubles values = model.weight.to_vector<double>();
      values.push_back(model.bias.to_vector<double>()[0]);
      return values;
    };
    before = all();
    const auto optimizer = build_optimizer(o, model.named_parameters());
    for (int t = 1; t <= kSteps; ++t) {
      optimizer->zero_grad();
      backward(sum(model(from_vector(Doubles{1.0 * t, 2.0 * t}, {1, 2}))));
      optimizer->step();
    }
    after = all();
  }
};

double gradient(size_t i, int t) { return i == 0 ? t : i == 1 ? 2 * t : 1; }

TrainingOptions options_for(const char* name) {
  TrainingOptions o;
  o.optimizer = &optimizer(name);
  o.lr = kRate, o.weight_decay = kDecay;
  return o;
}

}  // namespace

TEST_CASE("tuning: beta1, beta2 and eps of AdamW follow its formula; no_decay leaves parameters by name") {
  TrainingOptions o = options_for("adamw");
  o.tuning = {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.25};
  for (const bool decays : {true, false}) {
    o.no_decay = decays ? "" : "bias";
    const Trained run(o);
    for (size_t i = 0; i < 3; ++i) {
      double w = run.before[i], m = 0, v = 0;
      for (int t = 1; t <= kSteps; ++t) {
        const double g = gradient(i, t);
        m = 0.5 * m + 0.5 * g, v = 0.75 * v + 0.25 * g * g;
        if (i < 2 || decays) w *= 1 - kRate * kDecay;
        w -= kRate * m / (1 - std::pow(0.5, t)) / (std::sqrt(v / (1 - std::pow(0.75, t))) + 0.25);
      }
      CHECK(run.after[i] == Approx(w).epsilon(1e-14));
    }
  }
}

TEST_CASE("tuning: the momentum of gradient descent follows its formula") {
  for (const char* name : {"sgd", "momentum"}) {
    TrainingOptions o = options_for(name);
    o.weight_decay = 0;
    for (const double momentum : {0.5, name == std::string("sgd") ? 0 : 0.9}) {
      o.tuning.momentum = momentum == 0.5 ? std::optional(0.5) : std::nullopt;  // none: the row's own
      const Trained run(o);
      for (size_t i = 0; i < 3; ++i) {
        double w = run.before[i], m = 0;
        for (int t = 1; t <= kSteps; ++t) {
          m = momentum * m + gradient(i, t);
          w -= kRate * m;
        }
        CHECK(run.after[i] == Approx(w).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("tuning: a row says what it takes, with its defaults; other numbers and names of nothing are refused") {
  CHECK(optimizer("adamw").tuning.beta2 == 0.999);
  CHECK(optimizer("nesterov").tuning.momentum == 0.9);
  CHECK(optimizer("muon").tuning.momentum == 0.95);
  CHECK(optimizer("muon").tuning.beta1 == 0.9);
  CHECK_FALSE(optimizer("adafactor").tuning.eps);
  TrainingOptions o = options_for("sgd");
  o.tuning.beta2 = 0.5;
  CHECK_THROWS_WITH(Trained(o), Contains("--beta2: the optimizer sgd does not have this setting"));
  o.tuning = {};
  o.no_decay = "bias,*.bias";
  CHECK_THROWS_WITH(Trained(o), Contains("no_decay: no parameter is called '*.bias'"));
}

TEST_CASE("the schedule of a training runs towards min_lr") {
  TrainingOptions o;
  o.lr = 0.5, o.min_lr = 0.1, o.warmup = 100, o.steps = 10;
  CHECK(o.rates().warmup == 10);  // no longer than the training
  o.warmup = 0;
  CHECK(o.rates().lr(0) == 0.5);
  CHECK(o.rates().lr(5) == Approx(0.3));
  CHECK(o.rates().lr(10) == Approx(0.1));
}
