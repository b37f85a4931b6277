// linear_cross_entropy() in chunks, against the composition; in bf16; with the cotangent of 1 that backward() makes.
#include "autograd/fused/linear_cross_entropy.h"

#include "core/kernels/matmul.h"
#include "tests/autograd/room.h"

using Values = std::vector<double>;

namespace {

constexpr TensorOptions kF64{DType::f64};

// Loss and its gradients by x, weight and bias, then the gradients of 1.5 times the loss.
template <class F>
Values everything(F loss, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& t,
                  const CrossEntropyOptions& o) {
  Values all{loss(x, w, b, t, o).item()};
  for (double factor : {1.0, 1.5}) {
    for (const Tensor& g : grad(loss(x, w, b, t, o) * factor, {x, w, b})) {
      const Values v = g.to_vector<double>();
      all.insert(all.end(), v.begin(), v.end());
    }
  }
  return all;
}

double max_difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("linear_cross_entropy works in chunks and never holds all logits") {
  Generator g{2, 0};
  const int64_t n = 300, classes = 40000;  // chunks of 128, 128 and 44 rows
  const Tensor x = require_grad(randn({n, 5}, {}, g)), w = require_grad(randn({classes, 5}, {}, g)),
               b = require_grad(randn({classes}, {}, g)), t = randint(0, classes, {n}, kCpu, g);
  const Values composed = everything(reference::linear_cross_entropy, x, w, b, t, {});
  host_allocator().reset_peak();
  const int64_t held = host_allocator().stats().current;
  const Values fused = everything(linear_cross_entropy, x, w, b, t, {});
  CHECK(host_allocator().stats().peak - held < n * classes * 4 * 6 / 10);  // the composition: twice n classes 4
  // Gradients are sums of n or `classes` products of size 1 / n.
  CHECK(max_difference(fused, composed) < 16 * 0x1p-24 * 10);
  CHECK(std::abs(fused[0] - composed[0]) < 4 * 0x1p-24 * composed[0]);
  NoGrad guard;
  CHECK(linear_cross_entropy(x, w, b, t).item() == fused[0]);
}

TEST_CASE("linear_cross_entropy in bf16 rounds the inputs of bf16 products, and no inputs of f32 products") {
  Generator g{3, 0};
  const int64_t n = 20, classes = 30, width = 8;
  const Tensor x = randn({n, width}, {DType::bf16}, g), w = randn({classes, width}, {DType::bf16}, g),
               b = zeros({classes}, {DType::bf16}), t = randint(0, classes, {n}, kCpu, g);
  const auto in = [&](DType d) {
    const auto leaf = [d](const Tensor& v) { return require_grad(detach(v.to(d))); };
    return everything(linear_cross_entropy, leaf(x), leaf(w), leaf(b), t, {});
  };
  const Values narrow = in(DType::bf16), wide = in(DType::f64);
  // A gradient is a sum over gradients of logits. Each of these is rounded by 2^-9. The rounding of the logits changes
  // a probability by twice the largest of their roundings. The sizes of a class's gradients follow from their sum,
  // since only its targets have gradients below 0; a row has at most 2 / n.
  const auto largest = [](const Tensor& v) {
    double most = 0;
    for (double e : v.to_vector<double>()) most = std::max(most, std::abs(e));
    return most;
  };
  const double logit = largest(linear(x.to(DType::f64), w.to(DType::f64)));
  const double each = kernels::bf16_products(kCpu) ? 0x1p-9 * (1 + 2 * 1.1 * logit) : 0;
  const std::vector<int64_t> targets = t.to_vector<int64_t>();
  const auto size = [&](size_t i) {  // the sum of the absolute terms of entry i
    if (i == 0) return 2 * logit;
    i = (i - 1) % ((n + classes) * width + classes);
    if (i < n * width) return 2.0 / n * largest(w);
    const size_t j = (i -= n * width) < classes * width ? i / width : i - classes * width;
    const double of_targets = 2.0 / n * std::count(targets.begin(), targets.end(), static_cast<int64_t>(j));
    return (wide[1 + (n + classes) * width + j] + of_targets) * (i < classes * width ? largest(x) : 1);
  };
  for (size_t i = 0; i < wide.size(); ++i)
    CHECK(std::abs(narrow[i] - wide[i]) <= 0x1p-7 * std::abs(wide[i]) + 1e-6 + 1.5 * each * size(i));
}

TEST_CASE("the gradient of linear_cross_entropy sees what became of the cotangent that nobody gave") {
  Generator g{2, 0};
  const Tensor x = require_grad(randn({5, 6}, kF64, g)), w = randn({9, 6}, kF64, g), t = randint(0, 9, {5}, kCpu, g);
  const auto gradient_by = [&](const std::function<Tensor(const Tensor&)>& made, GradHook hook) {
    const Tensor loss = linear_cross_entropy(x, w, {}, t);
    if (hook) on_grad(loss, std::move(hook));
    return grad(made(loss), {x})[0].to_vector<double>();
  };
  const auto same = [](const Tensor& loss) { return loss; };
  Values twice = gradient_by(same, {});
  for (double& v : twice) v *= 2;
  CHECK(gradient_by(same, [](const Tensor& one) { return one * 2; }) == twice);
  CHECK(gradient_by(same, [](const Tensor& one) { return copy_into(one, one * 2), one; }) == twice);
  CHECK(gradient_by([](const Tensor& loss) { return loss + loss; }, {}) == twice);
  CHECK(gradient_by([](const Tensor& loss) { return loss * 2; }, {}) == twice);
  const Tensor loss = linear_cross_entropy(x, w, {}, t);
  const std::vector<Tensor> both{loss, loss}, inputs{x};
  CHECK(grad(both, inputs)[0].to_vector<double>() == twice);
}
