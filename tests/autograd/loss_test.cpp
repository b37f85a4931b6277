// Losses: values against plain f64 code, gradients by finite differences, options, extremes, bad inputs.
#include "autograd/ops/loss.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/memory/allocator.h"
#include "core/system/parallel.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Values = std::vector<double>;

namespace {

constexpr TensorOptions kF64{DType::f64};

struct Naive {
  Values losses;
  double rows = 0;  // not ignored
};

// -sum_j q_j (x_j - ln sum exp x), straight from the definition.
Naive naive_cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  const Values x = logits.to_vector<double>();
  const std::vector<int64_t> t = target.to_vector<int64_t>();
  const int64_t c = logits.size(-1);
  Naive result;
  for (size_t r = 0; r < t.size(); ++r) {
    double sum = 0, loss = 0;
    for (int64_t j = 0; j < c; ++j) sum += std::exp(x[r * c + j]);
    for (int64_t j = 0; j < c; ++j) {
      const double q = (1 - o.label_smoothing) * (j == t[r]) + o.label_smoothing / double(c);
      loss -= q * (x[r * c + j] - std::log(sum));
    }
    const bool counts = t[r] != o.ignore_index;
    result.losses.push_back(counts ? loss : 0);
    result.rows += counts;
  }
  return result;
}

void require_gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult r = gradcheck(f, inputs);
  INFO(r.message());
  CHECK(r.ok);
}

}  // namespace

TEST_CASE("cross_entropy follows its definition for every option") {
  Generator g{1, 0};
  for (int64_t classes : {1, 2, 7, 8, 19, 130}) {
    const Tensor logits = mul(randn({3, 5, classes}, kF64, g), 2);
    Tensor target = randint(0, classes, {3, 5}, kCpu, g);
    target.mutable_data<int64_t>()[4] = -100;
    target.mutable_data<int64_t>()[5] = classes - 1;
    for (double smoothing : {0.0, 0.1, 1.0}) {
      for (int64_t ignored : {int64_t{-100}, classes - 1}) {
        if (ignored != -100) target.mutable_data<int64_t>()[4] = 0;
        CrossEntropyOptions o{ignored, smoothing, Reduction::none};
        const Naive naive = naive_cross_entropy(logits, target, o);
        const Values got = cross_entropy(logits, target, o).to_vector<double>();
        double total = 0, worst = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          worst = std::max(worst, std::abs(got[i] - naive.losses[i]));
          total += naive.losses[i];
        }
        CHECK(worst < 8 * 0x1p-52 * std::sqrt(classes) * 10);  // terms of size 10
        const auto f = [&](const std::vector<Tensor>& x) { return cross_entropy(x[0], target, o); };
        require_gradcheck(f, {logits});
        o.reduction = Reduction::sum;
        CHECK(f({logits}).item() == Approx(total).epsilon(1e-14).margin(1e-14));
        require_gradcheck(f, {logits});
        o.reduction = Reduction::mean;
        if (naive.rows > 0) {
          CHECK(f({logits}).item() == Approx(total / naive.rows).epsilon(1e-14).margin(1e-14));
          require_gradcheck(f, {logits});
        } else {
          CHECK(std::isnan(f({logits}).item()));
        }
      }
    }
  }
}

TEST_CASE("cross_entropy of one row, of a view, and of no rows") {
  const Tensor x = from_vector<double>({1, 2, 3, 4, 5, 7}, {3, 2});
  const double expected = std::log(std::exp(1) + std::exp(3) + std::exp(5)) - 3;
  CHECK(cross_entropy(select(transpose(x, 0, 1), 0, 0), from_vector<int64_t>({1}, {})).item() ==
        Approx(expected).epsilon(1e-15));
  CHECK(cross_entropy(zeros({0, 4}), zeros({0}, {DType::i64}), {.reduction = Reduction::sum}).item() == 0);
}

TEST_CASE("cross_entropy keeps its digits where exponentials overflow or vanish") {
  Tensor x = from_vector<float>({1000, 0, -1000, -INFINITY, 300.25f, 300}, {2, 3});
  require_grad(x);
  const Tensor loss = cross_entropy(x, tensor<int64_t>({1, 2}), {.reduction = Reduction::none});
  const double gap = std::log1p(std::exp(-0.25));
  CHECK(loss.to_vector<double>()[0] == 1000);
  CHECK(loss.to_vector<double>()[1] == Approx(0.25 + gap).epsilon(1e-6));
  backward(sum(loss));
  const Values dx = x.grad().to_vector<double>();
  CHECK(Values(dx.begin(), dx.begin() + 4) == Values{1, -1, 0, 0});
  CHECK(dx[4] == Approx(std::exp(-gap)).epsilon(3e-7));
  // A confident row: the gradient at the target is -(1 - p), not the rounded difference 1 - 1.
  Tensor y = from_vector<float>({20, 0}, {1, 2});
  require_grad(y);
  backward(cross_entropy(y, tensor<int64_t>({0})));
  CHECK(y.grad().to_vector<double>()[1] == Approx(std::exp(-20)).epsilon(1e-6));
}

TEST_CASE("ignored rows take no gradient even where nothing remains") {
  Tensor x = ones({2, 3});
  require_grad(x);
  backward(cross_entropy(x, full({2}, -100, {DType::i64})));
  CHECK(x.grad().to_vector<double>() == Values(6, 0));
}

TEST_CASE("cross_entropy in f32 and bf16 rounds the f64 values") {
  Generator g{4, 0};
  const Tensor exact = randn({40, 33}, kF64, g), target = randint(0, 33, {40}, kCpu, g);
  for (DType d : {DType::f32, DType::bf16}) {
    Tensor x = to(exact, d), wide = x.to(DType::f64);
    require_grad(x), require_grad(wide);
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

TEST_CASE("cross_entropy has the same bits for any number of threads, and makes one tensor of the logits' size") {
  Generator g{6, 0};
  Tensor x = randn({3000, 50}, {}, g);
  require_grad(x);
  const Tensor target = randint(0, 50, {3000}, kCpu, g);
  std::vector<std::vector<float>> bits;
  const int before = num_threads();
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const Tensor loss = cross_entropy(x, target);
    std::vector<float> all = grad(loss, {x})[0].to_vector<float>();
    all.push_back(static_cast<float>(loss.item()));
    bits.push_back(all);
  }
  set_num_threads(before);
  CHECK(bits[1] == bits[0]);
  CHECK(bits[2] == bits[0]);
  host_allocator().reset_peak();
  const int64_t held = host_allocator().stats().current;
  grad(cross_entropy(x, target), {x});
  CHECK(host_allocator().stats().peak - held < 1.5 * 4 * 3000 * 50);
}

TEST_CASE("pointwise losses follow their formulas for every reduction") {
  Generator g{8, 0};
  const Tensor x = mul(randn({4, 6}, kF64, g), 2), y = randn({4, 6}, kF64, g), q = rand({4, 6}, kF64, g);
  const Values vx = x.to_vector<double>(), vy = y.to_vector<double>(), vq = q.to_vector<double>();
  const auto verify = [&](auto loss, const Tensor& target, const Values& vt, auto formula) {
    double total = 0, worst = 0;
    const Values each = loss(x, target, Reduction::none).template to_vector<double>();
    for (size_t i = 0; i < vx.size(); ++i) {
      total += formula(vx[i], vt[i]);
      worst = std::max(worst, std::abs(each[i] - formula(vx[i], vt[i])) / (1 + std::abs(each[i])));
    }
    CHECK(worst < 8 * 0x1p-52);
    CHECK(loss(x, target, Reduction::sum).item() == Approx(total).epsilon(1e-14).margin(1e-14));
    CHECK(loss(x, target, Reduction::mean).item() == Approx(total / 24).epsilon(1e-14));
    require_gradcheck([&](auto& t) { return loss(t[0], t[1], Reduction::none); }, {x, target});
  };
  verify(mse_loss, y, vy, [](double a, double b) { return (a - b) * (a - b); });
  verify(l1_loss, y, vy, [](double a, double b) { return std::abs(a - b); });
  verify([](const Tensor& a, const Tensor& b, Reduction r) { return huber_loss(a, b, 1.5, r); }, y, vy,
         [](double a, double b) {
           const double d = std::abs(a - b);
           return d <= 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
         });
  verify(bce_with_logits, q, vq, [](double a, double t) {
    const double p = 1 / (1 + std::exp(-a));
    return -(t * std::log(p) + (1 - t) * std::log(1 - p));
  });
  // The bce of a confident right answer keeps its digits, of a confident wrong one does not overflow.
  const Tensor far = tensor({60.0, -60.0, 800.0}), label = tensor({1.0, 0.0, 0.0});
  const Values b = bce_with_logits(far, label, Reduction::none).to_vector<double>();
  CHECK(b[0] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[1] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[2] == 800);
}

TEST_CASE("the gradient of bce_with_logits by its target is -x, by x it keeps the digits of a confident answer") {
  for (const DType d : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor values = to(tensor({1e-4, -2.0, 30.0, -80.0}), d);
    Tensor x = detach(values), t = to(tensor({0.5, 0.25, 1.0, 0.0}), d);
    require_grad(x), require_grad(t);
    backward(bce_with_logits(x, t, Reduction::sum));
    const Values v = values.to_vector<double>(), dx = x.grad().to_vector<double>();
    CHECK(t.grad().to_vector<double>() == Values{-v[0], -v[1], -v[2], -v[3]});
    const double tolerance = 8 * epsilon(d);
    CHECK(dx[1] == Approx(1 / (1 + std::exp(2)) - 0.25).epsilon(tolerance));
    CHECK(dx[2] == Approx(-1 / (1 + std::exp(30))).epsilon(tolerance));
    CHECK(dx[3] == Approx(1 / (1 + std::exp(80))).epsilon(tolerance));
  }
}

TEST_CASE("bad arguments of losses are named") {
  const Tensor x = zeros({2, 3}), t = zeros({2}, {DType::i64});
  CHECK_THROWS_WITH(cross_entropy(x, zeros({3}, {DType::i64})), Contains("[3]") && Contains("[2, 3]"));
  CHECK_THROWS_WITH(cross_entropy(x, tensor<int64_t>({0, 3})), Contains("id 3") && Contains("size 3"));
  CHECK_THROWS_WITH(cross_entropy(x, tensor<int64_t>({-1, 0})), Contains("id -1"));
  CHECK_THROWS_WITH(cross_entropy(x, tensor<int64_t>({-100, 0}), {.ignore_index = -1}), Contains("id -100"));
  CHECK_THROWS_WITH(cross_entropy(x, t, {.label_smoothing = 1.5}), Contains("1.5"));
  CHECK_THROWS_WITH(cross_entropy(x, zeros({2})), Contains("f32"));
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 0}), t), Contains("[2, 0]"));
  CHECK_THROWS_WITH(mse_loss(x, zeros({3})), Contains("[2, 3]") && Contains("[3]"));
  CHECK_THROWS_WITH(l1_loss(x, zeros({2, 3}, kF64)), Contains("f32") && Contains("f64"));
  CHECK_THROWS_WITH(huber_loss(x, x, 0), Contains("delta is 0"));
}
