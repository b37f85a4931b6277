// Controls that perturb activations: which results are perturbed, by how much; without them a graph does not change.
#include "equivalence/causes/moved_results.h"

#include "autograd/ops/index.h"
#include "equivalence/compare/compare.h"
#include "tests/equivalence/room.h"

namespace {

// The values of `make` without and with MovedResults.
std::pair<std::vector<double>, std::vector<double>> still_and_moved(const std::function<Tensor()>& make) {
  const std::vector<double> still = make().to_vector<double>();
  const MovedResults moved(1);
  return {still, make().to_vector<double>()};
}

}  // namespace

TEST_CASE("moved results: each entry of a new result moves to a neighbouring number, some up and some down") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    manual_seed(4);
    const Tensor x = require_grad(randn({20, 30}, {dtype}));
    const auto [still, moved] = still_and_moved([&] { return x * 0.7; });
    int up = 0;
    for (size_t i = 0; i < still.size(); ++i) {
      const auto next = [&](double to) {
        return dtype == DType::f64
                   ? std::nextafter(still[i], to)
                   : static_cast<double>(std::nextafterf(static_cast<float>(still[i]), static_cast<float>(to)));
      };
      CHECK((moved[i] == next(INFINITY) || moved[i] == next(-INFINITY)));
      up += moved[i] > still[i];
    }
    CHECK(std::abs(up - 300) < 4 * std::sqrt(600 / 4.0));  // 600 fair draws, four standard deviations
  }
}

TEST_CASE("moved results: views, whole numbers, infinities, maxima and unrecorded results do not change") {
  manual_seed(4);
  const Tensor x = require_grad(randn({4, 6}, {DType::f64}));
  const Tensor plain = randn({4, 6}, {DType::f64});
  const std::vector<double> before = x.to_vector<double>();
  const auto stays = [](const std::function<Tensor()>& make) {
    const auto [still, moved] = still_and_moved(make);
    CHECK(still == moved);
  };
  stays([&] { return transpose(x, 0, 1); });
  stays([&] { return narrow(x, 1, 2, 3); });
  stays([&] { return amax(x, {-1}); });
  stays([&] { return amin(x); });
  stays([&] { return round(x * 10.0); });
  stays([&] { return relu(x * 0.0); });
  stays([&] { return plain * 0.7; });  // needs no gradient
  CHECK(x.to_vector<double>() == before);

  const MovedResults moved(1);
  const std::vector<double> masked = masked_fill(x, gt(x, 0.0), -INFINITY).to_vector<double>();
  for (size_t i = 0; i < masked.size(); ++i) CHECK((masked[i] == -INFINITY) == (before[i] > 0));
}

TEST_CASE("moved results: the seed decides, and the gradient of a maximum stays defined") {
  manual_seed(4);
  const Tensor x = require_grad(randn({5, 6}, {DType::f64}));
  const auto loss_with = [&](uint64_t seed) {
    const MovedResults moved(seed);
    return sum(exp(x - amax(x, {-1}, true))).item();
  };
  CHECK(loss_with(1) == loss_with(1));
  CHECK(loss_with(1) != loss_with(2));
  {
    const MovedResults moved(3);
    backward(sum(square(amax(x, {-1}))));
  }
  CHECK(all(isfinite(x.grad())).item() == 1);
}

// Rows with a constant that is 1000 times their spread: one ulp of a row changes the gradient a thousand times as much
// as one ulp of a weight.
TEST_CASE("moved results: a layer norm of rows far from zero has the gradients of its composition") {
  struct OffsetNet : nn::Module {
    bool composed;
    nn::Linear &entry = add("entry", nn::Linear(8, 8)), &head = add("head", nn::Linear(8, 4));
    explicit OffsetNet(bool c) : composed(c) { to(DType::f64); }
    Tensor forward(const Tensor& x) override {
      const Tensor y = entry(x) + 1000.0, centred = y - mean(y, {-1}, true);
      return head(composed ? centred * rsqrt(mean(square(centred), {-1}, true) + 1e-5) : layer_norm(y));
    }
  };
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    manual_seed(seed);
    OffsetNet a(true), b(false);
    const auto batches = [&](int64_t point) {
      Generator g{seed, static_cast<uint64_t>(point) << 20};
      return Examples{randn({12, 8}, {DType::f64}, g), randint(0, 4, {12}, kCpu, g)};
    };
    const Comparison c = compare_gradients(a, b, {}, cross_entropy_of, batches, {.points = 2, .seed = seed});
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}
