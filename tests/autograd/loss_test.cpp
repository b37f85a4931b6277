// Losses beyond their rows in tests/op_cases: extreme values, digits of gradients, memory.
#include "autograd/ops/loss.h"

#include "tests/autograd/room.h"

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

TEST_CASE("if all rows are ignored the mean is 0, and so are all gradients; an ignored row is not looked at") {
  const Tensor none = full({2}, -100, {DType::i64}), logits = from_vector<double>({1, 2, NAN, -INFINITY, 5, 6}, {2, 3});
  for (const DType d : {DType::f64, DType::f32, DType::bf16})
    for (const bool weighted : {false, true})
      for (const double smoothing : {0.0, 0.25})
        for (const Reduction r : {Reduction::mean, Reduction::sum}) {
          INFO(name_of(d) << (weighted ? ", weighted" : "") << ", smoothing " << smoothing);
          const Tensor x = require_grad(clone(logits).to(d)), w = require_grad(ones({3}, {d})),
                       b = require_grad(ones({3}, {d}));
          const Tensor table = require_grad(ones({3, 3}, {d})), rows = require_grad(ones({2, 3}, {d}));
          const CrossEntropyOptions o{.label_smoothing = smoothing, .reduction = r, .weight = weighted ? w : Tensor()};
          const Tensor loss = cross_entropy(x, none, o), fused = linear_cross_entropy(rows, table, b, none, o);
          CHECK(loss.item() == 0);
          CHECK(fused.item() == 0);
          backward(loss), backward(fused);
          for (const Tensor& leaf : {x, table, rows, b}) CHECK(sum(ne(leaf.grad(), 0)).item() == 0);
          if (weighted) CHECK(sum(ne(w.grad(), 0)).item() == 0);
        }
  // One row of two is ignored: the loss of the other, ln(e^2 + 1 + e) - 1.
  for (const bool weighted : {false, true}) {
    const Tensor x = require_grad(from_vector<double>({NAN, INFINITY, 1, 2, 0, 1}, {2, 3}));
    const Tensor loss =
        cross_entropy(x, tensor<int64_t>({-100, 2}), {.weight = weighted ? ones({3}, {DType::f64}) : Tensor()});
    CHECK(loss.item() == Approx(std::log(std::exp(2) + 1 + std::exp(1)) - 1).epsilon(1e-14));
    backward(loss);
    const Values dx = x.grad().to_vector<double>();
    CHECK(Values(dx.begin(), dx.begin() + 3) == Values(3, 0));
    CHECK(dx[4] == Approx(1 / (std::exp(2) + 1 + std::exp(1))).epsilon(1e-14));
  }
}

TEST_CASE("a class without probability counts for nothing in a weighted loss that is not smoothed") {
  const Tensor x = require_grad(from_vector<double>({0, -INFINITY, 0}, {1, 3}));
  const Tensor loss = cross_entropy(x, tensor<int64_t>({2}), {.weight = ones({3}, {DType::f64})});
  CHECK(loss.item() == Approx(std::log(2)).epsilon(1e-15));
  backward(loss);
  CHECK(x.grad().to_vector<double>() == Values{0.5, 0, -0.5});
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

TEST_CASE(
    "binary_cross_entropy_with_logits of a confident right answer keeps its digits, of a confident wrong one does not "
    "overflow") {
  const Tensor far = tensor({60.0, -60.0, 800.0}), label = tensor({1.0, 0.0, 0.0});
  const Values b = binary_cross_entropy_with_logits(far, label, Reduction::none).to_vector<double>();
  CHECK(b[0] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[1] == Approx(std::exp(-60)).epsilon(1e-14));
  CHECK(b[2] == 800);
}

TEST_CASE(
    "the gradient of binary_cross_entropy_with_logits by its target is -x, by x it keeps the digits of a confident "
    "answer") {
  for (const DType d : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor values = to(tensor({1e-4, -2.0, 30.0, -80.0}), d);
    const Tensor x = require_grad(detach(values)), t = require_grad(to(tensor({0.5, 0.25, 1.0, 0.0}), d));
    backward(binary_cross_entropy_with_logits(x, t, Reduction::sum));
    const Values v = values.to_vector<double>(), dx = x.grad().to_vector<double>();
    CHECK(t.grad().to_vector<double>() == Values{-v[0], -v[1], -v[2], -v[3]});
    const double tolerance = 8 * epsilon(d);
    CHECK(dx[1] == Approx(1 / (1 + std::exp(2)) - 0.25).epsilon(tolerance));
    CHECK(dx[2] == Approx(-1 / (1 + std::exp(30))).epsilon(tolerance));
    CHECK(dx[3] == Approx(1 / (1 + std::exp(80))).epsilon(tolerance));
  }
}
