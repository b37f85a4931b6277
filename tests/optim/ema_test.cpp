// The moving average of weights, compared with its recurrence, one number at a time.
#include "tests/optim/gpt.h"

#include "optim/ema.h"
#include "optim/sgd.h"
#include "tests/optim/cases.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using published::numbers;
using test::on_test_device;

namespace {

void put(const Tensor& p, const std::vector<double>& values) { copy_into(detach(p), from_vector(values, p.shape())); }

}  // namespace

TEST_CASE("the averages of a small GPT's weights over 100 steps follow their recurrence") {
  for (bool warmup : {false, true}) {
    nn::Gpt model = fixture::make_gpt();
    const std::vector<Tensor> p = model.parameters();
    optim::Sgd opt(p, {.lr = 0.1});
    optim::Ema ema(p, {.decay = 0.95, .warmup = warmup});
    std::vector<std::vector<double>> expected;
    for (const Tensor& x : p) expected.push_back(x.to_vector<double>());
    for (int step = 0; step < fixture::kSteps; ++step) {
      opt.zero_grad();
      fixture::backward_of_step(model, step);
      opt.step();
      ema.update();
      const double t = step + 1, decay = warmup ? std::min(0.95, (1 + t) / (10 + t)) : 0.95;
      for (size_t i = 0; i < p.size(); ++i) {
        const std::vector<double> w = p[i].to_vector<double>();
        for (size_t k = 0; k < w.size(); ++k) expected[i][k] = decay * expected[i][k] + (1 - decay) * w[k];
      }
    }
    for (size_t i = 0; i < p.size(); ++i) {
      INFO("parameter " << i);
      check_close(ema.averages()[i], from_vector(expected[i], p[i].shape()), fixture::kTolerance);
    }
  }
}

TEST_CASE("apply and restore give the averages and bit for bit the weights back, bf16 too") {
  Tensor a = require_grad(on_test_device(tensor({1.0, 2.0}))),
         b = require_grad(on_test_device(tensor({1.0f})).to(DType::bf16));
  optim::Ema ema({a, b}, {.decay = 0.5});
  put(a, {3, 6}), put(b, {2});
  ema.update();
  CHECK(a.to_vector<double>() == std::vector<double>{3, 6});  // averaging does not change the weights
  const TensorMap state = ema.state_dict();
  ema.apply();
  CHECK(a.to_vector<double>() == std::vector<double>{2, 4});
  CHECK(b.item() == 1.5);
  CHECK_THROWS_WITH(ema.apply(), Contains("call restore() first"));
  CHECK_THROWS_WITH(ema.update(), Contains("between apply() and restore()"));
  CHECK_THROWS_WITH(ema.state_dict(), Contains("call restore() before the state is saved"));
  CHECK_THROWS_WITH(ema.load_state_dict(state), Contains("call restore() before a state is loaded"));
  ema.restore();
  CHECK(a.to_vector<double>() == std::vector<double>{3, 6});
  CHECK(b.item() == 2);
  CHECK_THROWS_WITH(ema.restore(), Contains("nothing to restore"));
  // bf16 weights that hardly move: the average must move, which 8 bits of precision could not represent.
  CHECK(ema.averages()[1].dtype() == DType::f32);
}

TEST_CASE("a saved average continues bit-equal when loaded; an average that does not fit changes nothing") {
  const std::vector<double> start = numbers(20000, 1);
  const Tensor p = on_test_device(start, {20000}), q = on_test_device(start, {20000});
  optim::Ema ema({p}, {.warmup = true}), other({q}, {.warmup = true});
  for (int step = 0; step < 5; ++step) put(p, numbers(20000, 10 + step)), ema.update();
  const TensorMap saved = nn::clone(ema.state_dict());
  other.load_state_dict(saved);
  for (int step = 5; step < 10; ++step)
    for (const auto& [e, x] : {std::pair{&ema, p}, {&other, q}}) put(x, numbers(20000, 10 + step)), e->update();
  check_close(ema.averages()[0], other.averages()[0], 0);
  CHECK(other.state_dict().at("step").item() == 10);
  const std::tuple<const char*, Tensor, const char*> wrong[] = {
      {"step", {}, "ema: the state 'step' is missing"},
      {"step", tensor({1.0}), "ema: the state 'step' is f64 [1], expected one i64 from 0"},
      {"0.average", {}, "ema: the state '0.average' is missing"},
      {"0.average", tensor({1.0}), "ema: the state '0.average' is f64 [1], expected f64 [20000]"},
      {"1.average", tensor({1.0}), "ema: the state has 3 entries, expected 2"}};
  for (const auto& [name, t, says] : wrong) CHECK_THROWS_WITH(other.load_state_dict(with(saved, name, t)), says);
  CHECK(other.state_dict().at("step").item() == 10);
  CHECK_THROWS_WITH(optim::Ema({p}, {.decay = 1}), "ema: decay is 1, expected a number in [0, 1)");
  CHECK_THROWS_WITH(optim::Ema({Tensor()}), "ema: parameter 0 is undefined");
}
