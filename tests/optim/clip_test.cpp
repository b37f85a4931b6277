// Norms and limits of gradients, compared with sums that add one number at a time.
#include <cfenv>

#include "optim/adam.h"
#include "optim/clip.h"
#include "tests/optim/published.h"
#include "tests/support/ops.h"
#include "tests/support/test_device.h"
#include "tests/support/threads.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using published::numbers;
using test::on_test_device, test::test_device;

namespace {

// Parameters with gradients of several blocks, f32 and f64 mixed, and one without a gradient.
std::vector<Tensor> with_gradients() {
  std::vector<Tensor> p;
  for (int64_t n : {70003, 5, 0, 16385}) {
    const std::vector<double> g = numbers(n, n + 1);
    const bool single = n == 5;
    Tensor x = empty({n}, {single ? DType::f32 : DType::f64, test_device()});
    require_grad(x);
    set_grad(x, single ? on_test_device(std::vector<float>(g.begin(), g.end()), {n}) : on_test_device(g, {n}));
    p.push_back(x);
  }
  p.push_back(require_grad(on_test_device(tensor({1.0}))));
  return p;
}

Tensor with_gradient(const std::vector<double>& values, const std::vector<double>& g) {
  const Dims shape{std::ssize(g)};
  Tensor p = require_grad(on_test_device(values, shape));
  set_grad(p, on_test_device(g, shape));
  return p;
}

std::vector<double> all_gradients(const std::vector<Tensor>& p) {
  std::vector<double> all;
  for (const Tensor& x : p)
    if (x.grad().defined())
      for (double g : x.grad().to_vector<double>()) all.push_back(g);
  return all;
}

}  // namespace

TEST_CASE("the global gradient norm is the same for any number of threads") {
  const auto p = with_gradients();
  const double norm = optim::grad_norm(p);
  CHECK(norm == Approx(published::norm(all_gradients(p))).epsilon(1e-14));
  for (int threads : {1, 2, 4}) {
    const test::Threads some(threads);
    CHECK(optim::grad_norm(p) == norm);
  }
  CHECK(optim::grad_norm({}) == 0);
}

TEST_CASE("norms, factors and steps have the same bits in every rounding mode of the program") {
  if (test_device() != kCpu) return;  // the emulated device rounds in the mode of the thread that waits for it
  std::vector<std::vector<double>> found;
  for (int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    const Tensor p = with_gradient({0.1, 0.7, -0.3}, {0.2, 0.9, 0.4});
    const std::vector<Tensor> many = with_gradients();
    optim::AdamW opt({p}, {.lr = 0.003, .weight_decay = 0.07});
    std::fesetround(mode);
    const double norm = optim::grad_norm(many), factor = optim::clip_factor(norm, 0.3);
    for (int i = 0; i < 3; ++i) opt.step(0.1);
    std::fesetround(FE_TONEAREST);
    found.push_back(p.to_vector<double>());
    found.back().insert(found.back().end(), {norm, factor});
  }
  for (const auto& numbers : found) CHECK(numbers == found[0]);
}

TEST_CASE("clip_grad_norm scales down, never up, and returns the norm before") {
  const auto p = with_gradients();
  const std::vector<double> before = all_gradients(p);
  const double norm = published::norm(before);
  CHECK(optim::clip_grad_norm(p, 2 * norm) == Approx(norm).epsilon(1e-14));
  CHECK(all_gradients(p) == before);
  CHECK(optim::clip_grad_norm(p, 0.5) == Approx(norm).epsilon(1e-14));
  const std::vector<double> after = all_gradients(p);
  for (size_t i = 0; i < before.size(); i += 101)
    CHECK(after[i] == Approx(before[i] * 0.5 / (norm + 1e-6)).epsilon(i >= 70003 && i < 70008 ? 0x1p-22 : 1e-14));
  CHECK(published::norm(after) == Approx(0.5).epsilon(1e-6));
  CHECK_FALSE(p.back().grad().defined());
}

TEST_CASE("a step with the clip factor is a step after clipping") {
  const auto p = with_gradients(), q = with_gradients();
  for (const auto* side : {&p, &q})
    for (const Tensor& x : *side) fill(x, 0.5);
  optim::AdamW a(p), b(q);
  optim::clip_grad_norm(p, 0.1);
  a.step();
  b.step(optim::clip_factor(optim::grad_norm(q), 0.1));
  for (size_t i = 0; i < p.size(); ++i) {
    const auto x = p[i].to_vector<double>(), y = q[i].to_vector<double>();
    for (size_t k = 0; k < x.size(); k += 97)
      CHECK(x[k] == Approx(y[k]).epsilon(p[i].dtype() == DType::f32 ? 1e-6 : 1e-14));
  }
}

TEST_CASE("norms that are not finite behave as in PyTorch") {
  const Tensor p = with_gradient({1, 2}, {3, HUGE_VAL});
  CHECK(optim::clip_grad_norm({p}, 1) == HUGE_VAL);
  CHECK(p.grad().to_vector<double>()[0] == 0);
  CHECK(std::isnan(p.grad().to_vector<double>()[1]));
  CHECK(std::isnan(optim::clip_factor(std::nan(""), 1)));
}

TEST_CASE("clip_grad_value clamps and keeps NaN") {
  const Tensor p = with_gradient({0, 0, 0, 0}, {-3, 0.25, 7, std::nan("")});
  optim::clip_grad_value({p}, 0.5);
  const auto g = p.grad().to_vector<double>();
  CHECK((g[0] == -0.5 && g[1] == 0.25 && g[2] == 0.5 && std::isnan(g[3])));
}

TEST_CASE("add_l2 adds the gradient of an L2 term, before a limit") {
  const Tensor p = with_gradient({1, -2, 5}, {0.5, 0.25, 0}), q = require_grad(on_test_device(tensor({1.0})));
  optim::add_l2({p, q}, 0.1);
  CHECK(p.grad().to_vector<double>() == std::vector<double>{0.5 + 0.1 * 1, 0.25 + 0.1 * -2, 0.1 * 5});
  CHECK_FALSE(q.grad().defined());
  CHECK(p.to_vector<double>() == std::vector<double>{1, -2, 5});
  optim::add_l2({}, 0.1);
  CHECK_THROWS_WITH(optim::add_l2({p}, -1), "add_l2: weight_decay is -1, expected a finite number from 0");
}

TEST_CASE("gradients that are views are clipped as themselves") {
  Tensor p = require_grad(on_test_device(tensor({0.0, 0.0})));
  set_grad(p, as_strided(on_test_device(tensor({3.0})), {2}, {0}, 0));
  CHECK(optim::clip_grad_norm({p}, 1) == Approx(std::sqrt(18.0)));
  CHECK(p.grad().to_vector<double>()[1] == Approx(3 / (std::sqrt(18.0) + 1e-6)));
}

TEST_CASE("bad limits are refused") {
  CHECK_THROWS_WITH(optim::clip_factor(1, 0), Contains("max_norm is 0"));
  CHECK_THROWS_WITH(optim::clip_grad_norm({}, -1), Contains("max_norm is -1"));
  CHECK_THROWS_WITH(optim::clip_grad_value({}, std::nan("")), Contains("limit is nan"));
  CHECK_THROWS_WITH(optim::grad_norm({on_test_device(tensor({1.0}))}), Contains("not a leaf"));
}
