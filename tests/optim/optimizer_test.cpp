// Every optimizer against its published formula; groups; state; misuse.
#include "tests/support/threads.h"

#include "core/memory/allocator.h"
#include "core/system/parallel.h"
#include "nn/vit.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "tests/optim/cases.h"
#include "tests/support/ops.h"
#include "tests/support/test_device.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using published::numbers;
using test::on_test_device, test::test_device;

namespace {

// Several blocks and a tail; a few elements; one; none; a matrix that fills its blocks exactly.
const std::vector<Dims> kShapes{{40001}, {3}, {1}, {0}, {128, 128}};

template <class T> Tensor parameter(const std::vector<double>& values, const Dims& shape) {
  Tensor p = on_test_device(std::vector<T>(values.begin(), values.end()), shape);
  return require_grad(p);
}
template <class T> Tensor parameter(const std::vector<double>& values) {
  return parameter<T>(values, {static_cast<int64_t>(values.size())});
}

std::vector<double> start_of(size_t i) { return numbers(numel(kShapes[i]), 7 + i); }

std::vector<Tensor> parameters() {
  std::vector<Tensor> p;
  for (size_t i = 0; i < kShapes.size(); ++i) p.push_back(parameter<double>(start_of(i), kShapes[i]));
  return p;
}

std::vector<double> gradient_at(int step, size_t i) { return numbers(numel(kShapes[i]), 1000 * (step + 1) + i); }
double rate_at(int step) { return 0.01 / (1 + 0.1 * step); }

void train(optim::Optimizer& opt, const std::vector<Tensor>& p, int from, int to, double scale = 1) {
  for (int step = from; step < to; ++step) {
    for (size_t i = 0; i < p.size(); ++i) set_grad(p[i], on_test_device(gradient_at(step, i), kShapes[i]));
    opt.set_lr(rate_at(step));
    opt.step(scale);
    opt.zero_grad();
  }
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double d = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (const double x = std::abs(a[i] - b[i]); !(x <= d) && !std::isnan(d)) d = x;
  return d;
}

}  // namespace

TEST_CASE("every optimizer follows its formula") {
  constexpr int kSteps = 30;
  constexpr double kScale = 0.25;
  for (const OptimizerCase& c : optimizer_cases()) {
    if (!c.rule) continue;
    const auto p = parameters();
    const auto opt = c.make(p);
    train(*opt, p, 0, kSteps, kScale);
    for (size_t i = 0; i < p.size(); ++i) {
      INFO(c.name << ", parameter " << i);
      std::vector<double> w = start_of(i);
      published::Rule rule = c.rule;
      for (int step = 0; step < kSteps; ++step) {
        std::vector<double> g = gradient_at(step, i);
        for (double& x : g) x *= kScale;
        rule(w, g, rate_at(step));
      }
      CHECK(largest_difference(p[i].to_vector<double>(), w) < 1e-12);
    }
  }
}

TEST_CASE("f32 follows f64 within rounding") {
  const std::vector<double> start = numbers(1000, 3);
  Tensor p = parameter<float>(start);
  optim::AdamW opt({p}, {.lr = 0.01});
  std::vector<double> w = p.to_vector<double>();
  published::Adam rule{.weight_decay = 0.01, .decoupled = true};
  for (int step = 0; step < 20; ++step) {
    const std::vector<double> g = numbers(1000, 50 + step);
    set_grad(p, on_test_device(std::vector<float>(g.begin(), g.end()), {1000}));
    opt.step();
    rule.step(w, p.grad().to_vector<double>(), 0.01);
  }
  // Each step rounds w (|w| < 1.3) a few times, and moves by lr times a ratio with a relative error of a few eps.
  CHECK(largest_difference(p.to_vector<double>(), w) < 20 * 4 * 1.3 * 0x1p-24);
  CHECK(largest_difference(opt.state_dict().at("0.exp_avg").to_vector<double>(), rule.m) < 20 * 4 * 0x1p-24);
}

TEST_CASE("a step of bf16 parameters is the step of f32 ones, rounded once") {
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    std::vector<Tensor> p16, p32;
    for (size_t i = 0; i < kShapes.size(); ++i) {
      p16.push_back(require_grad(on_test_device(start_of(i), kShapes[i]).to(DType::bf16)));
      p32.push_back(require_grad(detach(p16[i]).to(DType::f32)));
    }
    const auto opt16 = c.make(p16), opt32 = c.make(p32);
    for (size_t i = 0; i < kShapes.size(); ++i) {
      set_grad(p16[i], on_test_device(gradient_at(0, i), kShapes[i]).to(DType::bf16));
      set_grad(p32[i], p16[i].grad().to(DType::f32));
    }
    opt16->step(0.5), opt32->step(0.5);
    for (size_t i = 0; i < kShapes.size(); ++i) CHECK(same_bytes(p16[i], detach(p32[i]).to(DType::bf16)));
    for (const auto& [name, t] : opt16->state_dict()) CHECK(same_bytes(t, opt32->state_dict().at(name)));
  }
}

TEST_CASE("a saved state continues bit-equal when loaded") {
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    const auto p = parameters();
    const auto opt = c.make(p);
    train(*opt, p, 0, 10);
    const TensorMap saved = nn::clone(opt->state_dict());  // a copy, as in a file
    std::vector<Tensor> q;
    for (const Tensor& x : p) q.push_back(parameter<double>(x.to_vector<double>(), x.shape()));
    train(*opt, p, 10, 20);
    const auto again = c.make(q);
    again->load_state_dict(saved);
    train(*again, q, 10, 20);
    for (size_t i = 0; i < p.size(); ++i) CHECK(p[i].to_vector<double>() == q[i].to_vector<double>());
  }
}

TEST_CASE("steps have the same bits for any number of threads") {
  for (const OptimizerCase& c : optimizer_cases()) {
    std::vector<std::vector<double>> first;
    for (int threads : {1, 2, 4}) {
      const test::Threads some(threads);
      const auto p = parameters();
      const auto opt = c.make(p);
      train(*opt, p, 0, 3);
      std::vector<std::vector<double>> now;
      for (const Tensor& x : p) now.push_back(x.to_vector<double>());
      if (first.empty()) first = now;
      CHECK(now == first);
    }
  }
}

TEST_CASE("groups have options and rates of their own") {
  Tensor a = parameter<double>({1, 2}), b = parameter<double>({3});
  optim::Sgd opt({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.25, .weight_decay = 2}}});
  set_grad(a, on_test_device(tensor({1.0, 1.0}))), set_grad(b, on_test_device(tensor({1.0})));
  opt.step();
  CHECK(a.to_vector<double>() == std::vector<double>{0.5, 1.5});
  CHECK(b.item() == 3 - 0.25 * (1 + 2 * 3));
  CHECK(opt.lr(1) == 0.25);
  opt.set_lr(1, 1);
  CHECK(opt.lr(0) == 0.5);
  opt.set_lr(2);
  CHECK(opt.lr(0) == 2);
  CHECK(opt.lr(1) == 1);
  CHECK(opt.state_dict().at("group.1.lr").item() == 1);
  CHECK_THROWS_WITH(opt.lr(2), "sgd: there is no group 2 among 2");
}

TEST_CASE("parameters without a gradient stay, and count no step") {
  Tensor a = parameter<double>({1}), b = parameter<double>({1});
  optim::AdamW opt({a, b}, {.lr = 0.1});
  set_grad(a, on_test_device(tensor({1.0})));
  opt.step();
  CHECK(b.item() == 1);
  CHECK(opt.state_dict().find("1.step") == nullptr);
  set_grad(b, on_test_device(tensor({1.0})));
  opt.step();
  CHECK(opt.state_dict().at("0.step").item() == 2);
  CHECK(opt.state_dict().at("1.step").item() == 1);
  CHECK(b.item() == Approx(1 * (1 - 0.1 * 0.01) - 0.1).epsilon(1e-7));
  opt.zero_grad();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("a step after the first takes no memory, and its write is seen by saved tensors") {
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    const auto p = parameters();
    const auto opt = c.make(p);
    for (size_t i = 0; i < p.size(); ++i) set_grad(p[i], on_test_device(gradient_at(0, i), kShapes[i]));
    opt->step();
    const auto before = allocator_of(test_device()).stats();
    const uint32_t version = p[0].impl().storage->version();
    opt->step();
    CHECK(allocator_of(test_device()).stats().current == before.current);
    CHECK(allocator_of(test_device()).stats().requests == before.requests);
    CHECK(p[0].impl().storage->version() > version);
  }
}

TEST_CASE("a training step after the second takes nothing from the system") {
  const test::Threads one(1);  // with several threads, the scratch memory in use at once depends on timing
  nn::Vit model({.image = 28, .patch = 7, .transformer = {.width = 64, .depth = 2}});
  model.to(test_device());
  optim::AdamW opt(model.parameters());
  const Tensor images = randn({32, 28, 28, 1}, {.device = test_device()}), labels = randint(0, 10, {32}, test_device());
  int64_t requests = 0;
  for (int step = 0; step < 5; ++step) {
    opt.zero_grad();
    backward(cross_entropy(model(images), labels));
    opt.step();
    if (step > 1) CHECK(allocator_of(test_device()).stats().requests == requests);
    requests = allocator_of(test_device()).stats().requests;
  }
}

TEST_CASE("a gradient that is a view is read as one") {
  Tensor p = require_grad(on_test_device<double>({0, 0, 0, 0}, {2, 2}));
  set_grad(p, as_strided(on_test_device(tensor({1.0, 2.0, 3.0, 4.0})), {2, 2}, {1, 2}, 0));
  optim::Sgd opt({p}, {.lr = 1});
  opt.step();
  CHECK(p.to_vector<double>() == std::vector<double>{-1, -3, -2, -4});
}

TEST_CASE("bad options and parameters are refused in one line") {
  Tensor p = parameter<double>({1, 2});
  CHECK_THROWS_WITH(optim::Sgd({p}, {.lr = -1}), "sgd: lr is -1, expected a finite number from 0");
  CHECK_THROWS_WITH(optim::Sgd({p}, {.momentum = 1}), Contains("momentum is 1"));
  CHECK_THROWS_WITH(optim::Sgd({p}, {.nesterov = true}), Contains("momentum is 0, expected more than 0 with nesterov"));
  CHECK_THROWS_WITH(optim::Sgd({p}, {.momentum = 0.9, .nesterov = true, .dampening = 0.1}),
                    "sgd: dampening is 0.1, expected 0 with nesterov");
  CHECK_THROWS_WITH(optim::SignSgd({p}, {.momentum = -0.1}), "sign_sgd: momentum is -0.1, expected a number in [0, 1)");
  CHECK_THROWS_WITH(optim::Lion({p}, {.beta1 = 1}), Contains("lion: beta1 is 1"));
  CHECK_THROWS_WITH(optim::Rmsprop({p}, {.alpha = 1}), Contains("rmsprop: alpha is 1"));
  CHECK_THROWS_WITH(optim::Adagrad({p}, {.initial = -1}), Contains("adagrad: initial is -1"));
  CHECK_THROWS_WITH(optim::Adam({p}, {.beta2 = 1}), "adam: beta2 is 1, expected a number in [0, 1)");
  CHECK_THROWS_WITH(optim::AdamW({p}, {.eps = std::nan("")}), Contains("adamw: eps is nan"));
  CHECK_THROWS_WITH(optim::AdamW({p}, {.weight_decay = -0.1}), Contains("weight_decay is -0.1"));
  CHECK(optim::AdamW({p, p}).parameters().size() == 1);  // as listed by two models that share it
  CHECK_THROWS_WITH(optim::AdamW({{{p}, {}}, {{p}, {}}}),
                    "adamw: a parameter of shape [2] is in group 0 and in group 1");
  CHECK_THROWS_WITH(optim::AdamW({tensor({1.0})}), Contains("parameter 0 of shape [1] takes no gradient"));
  CHECK_THROWS_WITH(optim::AdamW({p, Tensor()}), Contains("parameter 1 is undefined"));
}

TEST_CASE("rmsprop keeps the states that its rule reads, and no others") {
  Tensor p = parameter<double>({1, 2});
  for (const bool centered : {false, true})
    for (const double momentum : {0.0, 0.5}) {
      optim::Rmsprop opt({p}, {.momentum = momentum, .centered = centered});
      set_grad(p, detach(p));
      opt.step();
      const TensorMap states = opt.state_dict();
      CHECK(states.find("0.square_avg"));
      CHECK((states.find("0.grad_avg") != nullptr) == centered);
      CHECK((states.find("0.momentum_buffer") != nullptr) == (momentum > 0));
    }
}

TEST_CASE("an optimizer of no parameters is refused, whatever it is") {
  const std::vector<Tensor> none;
  CHECK_THROWS_WITH(optim::Adam(none),
                    "adam: it is made of no parameters, nothing would train; a module has only "
                    "parameters and children that were given to add()");
  CHECK_THROWS_WITH(optim::AdamW({{none, {}}, {none, {}}}), Contains("adamw: it is made of no parameters"));
  const std::vector<Tensor> one = {parameter<double>({1, 2})};
  CHECK(optim::AdamW({{none, {}}, {one, {}}}).groups() == 2);
  for (const OptimizerCase& c : optimizer_cases())
    CHECK_THROWS_WITH(c.make(none), Contains("it is made of no parameters"));
}

TEST_CASE("a frozen parameter stays, keeps its state and continues from it when it is thawed") {
  Tensor p = parameter<double>({1, 2}), q = parameter<double>({3});
  optim::Sgd opt({p, q}, {.lr = 1, .momentum = 0.5});
  const auto step = [&] {
    for (const Tensor& x : {p, q})
      if (requires_grad(x)) set_grad(x, ones_like(x));
    optim::clip_grad_norm(opt.parameters(), 100);
    opt.step();
    opt.zero_grad();
  };
  step();
  require_grad(p, false);
  step();
  CHECK(p.to_vector<double>() == std::vector<double>{0, 1});
  CHECK(q.item() == 3 - 1 - 1.5);
  require_grad(p);
  step();
  CHECK(p.to_vector<double>() == std::vector<double>{-1.5, -0.5});
}

TEST_CASE("a parameter that only the optimizer still holds is an error, not a training that does nothing") {
  Tensor p = parameter<double>({1, 2}), q = parameter<double>({3});
  optim::AdamW opt({p, q});
  p = Tensor();
  set_grad(q, ones_like(q));
  CHECK_THROWS_WITH(opt.step(), Contains("adamw: nothing else holds parameter 0 of shape [2]"));
}

TEST_CASE("a state that does not fit is refused whole") {
  Tensor p = parameter<double>({1, 2});
  optim::AdamW opt({p});
  set_grad(p, on_test_device(tensor({1.0, 1.0})));
  opt.step();
  const std::tuple<const char*, Tensor, const char*> wrong[] = {
      {"0.exp_avg", {}, "the state '0.exp_avg' is missing"},
      {"group.0.lr", {}, "the state 'group.0.lr' is missing"},
      {"0.exp_avg", tensor({1.0}), "the state '0.exp_avg' is f64 [1], expected f64 [2]"},
      {"0.exp_avg_sq", tensor({1.f, 2.f}), "the state '0.exp_avg_sq' is f32 [2], expected f64 [2]"},
      {"0.step", tensor({1.0}), "the state '0.step' is f64 [1], expected one i64 from 0"},
      {"1.step", tensor({int64_t{1}}), "the state '1.step' is unknown to these 1 parameters"},
      {"group.0.lr", tensor({-1.0}), "group.0.lr is -1, expected a finite number from 0"},
      {"group.0.lr", tensor({1.f}), "the state 'group.0.lr' is f32 [1], expected one f64"}};
  for (const auto& [name, t, says] : wrong)
    CHECK_THROWS_WITH(opt.load_state_dict(with(opt.state_dict(), name, t)), text("adamw: ", says));
  CHECK(opt.state_dict().at("0.step").item() == 1);
  CHECK(opt.lr() == 1e-3);
}
