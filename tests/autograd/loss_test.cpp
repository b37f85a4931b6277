// Losses beyond their rows in tests/op_cases: extremes, digits of gradients, memory.
#include "autograd/ops/loss.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/memory/allocator.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Values = std::vector<double>;

TEST_CASE("cross_entropy keeps its digits where exponentials overflow or vanish") {
  const Tensor x = require_grad(from_vector<float>({1000, 0, -1000, -INFINITY, 300.25f, 300}, {2, 3}));
  const Tensor loss = cross_entropy(x, tensor<int64_t>({1, 2}), {.reduction = Reduction::none});
  const double gap = std::log1p(std::exp(-0.25));
  CHECK(loss.to_vector<double>()[0] == 1000);
  CHECK(loss.to_vector<double>()[1] == Approx(0.25 + gap).epsilon(1e-6));
  backward(sum(loss));
  const Values dx = x.grad().to_vector<double>();
  CHECK(Values(dx.begin(), dx.begin() + 4) == Values{1, -1, 0, 0});
  CHECK(dx[4] == Approx(std::exp(-gap)).epsilon(3e-7));
  // A confident row: the gradient at the target is -(1 - p), not the rounded difference 1 - 1.
  const Tensor y = require_grad(from_vector<float>({20, 0}, {1, 2}));
  backward(cross_entropy(y, tensor<int64_t>({0})));
  CHECK(y.grad().to_vector<double>()[1] == Approx(std::exp(-20)).epsilon(1e-6));
}

TEST_CASE("ignored rows take no gradient even where nothing remains") {
  const Tensor x = require_grad(ones({2, 3}));
  backward(cross_entropy(x, full({2}, -100, {DType::i64})));
  CHECK(x.grad().to_vector<double>() == Values(6, 0));
}

TEST_CASE("cross_entropy in f32 and bf16 rounds the f64 values") {
  Generator g{4, 0};
  const Tensor exact = randn({40, 33}, {DType::f64}, g), target = randint(0, 33, {40}, kCpu, g);
  for (DType d : {DType::f32, DType::bf16}) {
    const Tensor x = require_grad(to(exact, d)), wide = require_grad(detach(x).to(DType::f64));
    const Tensor loss = cross_entropy(x, target), reference = cross_entropy(wide, target);
    CHECK(loss.dtype() == d);
    CHECK(std::abs(loss.item() - reference.item()) < epsilon(d) * reference.item());
    backward(loss), backward(reference);
    const Values a = x.grad().to_vector<double>(), b = wide.grad().to_vector<double>();
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
    CHECK(worst < (d == DType::f32 ? 8 : 1) * epsilon(d));
  }
}

TEST_CASE("cross_entropy makes one tensor of the logits' size") {
  Generator g{6, 0};
  const Tensor x = require_grad(randn({3000, 50}, {}, g)), target = randint(0, 50, {3000}, kCpu, g);
  host_allocator().reset_peak();
  const int64_t held = host_allocator().stats().current;
  grad(cross_entropy(x, target), {x});
  CHECK(host_allocator().stats().peak - held < 1.5 * 4 * 3000 * 50);
}

TEST_CASE("bce_with_logits of a confident right answer keeps its digits, of a confident wrong one does not overflow") {
  const Tensor far = tensor({60.0, -60.0, 800.0}), label = tensor({1.0, 0.0, 0.0});
  const Values b = bce_with_logits(far, label, Reduction::none).to_vector<double>();
  CHECK(b[0] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[1] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[2] == 800);
}

TEST_CASE("the gradient of bce_with_logits by its target is -x, by x it keeps the digits of a confident answer") {
  for (const DType d : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor values = to(tensor({1e-4, -2.0, 30.0, -80.0}), d);
    const Tensor x = require_grad(detach(values)), t = require_grad(to(tensor({0.5, 0.25, 1.0, 0.0}), d));
    backward(bce_with_logits(x, t, Reduction::sum));
    const Values v = values.to_vector<double>(), dx = x.grad().to_vector<double>();
    CHECK(t.grad().to_vector<double>() == Values{-v[0], -v[1], -v[2], -v[3]});
    const double tolerance = 8 * epsilon(d);
    CHECK(dx[1] == Approx(1 / (1 + std::exp(2)) - 0.25).epsilon(tolerance));
    CHECK(dx[2] == Approx(-1 / (1 + std::exp(30))).epsilon(tolerance));
    CHECK(dx[3] == Approx(1 / (1 + std::exp(80))).epsilon(tolerance));
  }
}
