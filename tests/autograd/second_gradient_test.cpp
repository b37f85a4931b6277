// Gradients of gradients: known derivatives, and refusals. Each op is compared with finite differences in
// tests/ops_test.cpp.
#include "tests/autograd/room.h"

namespace {
constexpr BackwardOptions kGraph{.create_graph = true};
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

std::string complaint(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult r = gradgradcheck(f, inputs);
  return r.ok ? std::string() : r.message();
}
// 0.3 and so on: no zeros, no equal entries.
Tensor entries(const Dims& shape) {
  const Tensor x = arange(0, static_cast<double>(numel(shape, "entries")), 1, {DType::f64});
  return sin(x * 2.3 + 0.3).reshape(shape);
}
}  // namespace

TEST_CASE("x^4 has derivatives up to the fourth") {
  const Tensor x = tensor({1.0, -2.0}).require_grad();
  Tensor y = square(square(x));
  const std::vector<std::vector<double>> expected = {{4, -32}, {12, 48}, {24, -48}, {24, 24}};
  for (const auto& e : expected) {
    y = grad(sum(y), {x}, {}, kGraph)[0];
    CHECK(values(y) == e);
  }
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a penalty on a gradient trains the weights that the gradient passes") {
  // f = sum (w x)^2, df/dx = 2 w^2 x. Its squares sum to 4 w^4 x^2, whose derivative by w is 16 w^3 x^2.
  const Tensor x = tensor({3.0}).require_grad(), w = tensor({{2.0}}).require_grad();
  const Tensor slope = grad(sum(square(linear(x, w))), {x}, {}, kGraph)[0];
  CHECK(values(slope) == std::vector<double>{24});
  backward(sum(square(slope)));
  CHECK(values(w.grad()) == std::vector<double>{16 * 8 * 9});
}

TEST_CASE("a cotangent, two outputs and a broadcast input have second derivatives") {
  const Tensor x = tensor({2.0}).require_grad(), c = tensor({1.0, 3.0}).require_grad();
  const std::vector<Tensor> outputs = {x * tensor({1.0, 10.0}) * x, exp(x)};
  const Tensor g = grad(outputs, std::vector<Tensor>{x}, std::vector<Tensor>{c, tensor({0.0})}, kGraph)[0];
  CHECK(values(g) == std::vector<double>{2 * 2 * 31});
  const auto second = grad(g, {x, c});
  CHECK(values(second[0]) == std::vector<double>{2 * 31});
  CHECK(values(second[1]) == std::vector<double>{4, 40});
}

TEST_CASE("the norm of a row of zeros has zeros as first and second derivatives") {
  const Tensor x = tensor({{0.0, 0.0}, {3.0, 4.0}}).require_grad();
  const Tensor slope = grad(sum(norm(x, {1})), {x}, {}, kGraph)[0];
  CHECK(values(slope) == std::vector<double>{0, 0, 3 * (1.0 / 5), 4 * (1.0 / 5)});
  // d/dx_0 of x_0 / |x| is (1 - x_0^2 / |x|^2) / |x|; of x_1 / |x| it is -x_0 x_1 / |x|^3.
  const std::vector<double> second = values(grad(sum(mul(slope, tensor({1.0, 0.0}))), {x})[0]);
  CHECK(second[0] == 0);
  CHECK(second[1] == 0);
  CHECK(std::abs(second[2] - 16.0 / 125) < 1e-15);
  CHECK(std::abs(second[3] + 12.0 / 125) < 1e-15);
}

TEST_CASE("an op without a second derivative is reported in one line with its name") {
  const Tensor x = tensor({{1.0, 2.0}}).require_grad();
  Tensor y = detach(x);
  track("own", {&y}, {&x})->backward = [](Flow& g) { g.give(0, g.out()); };
  CHECK_THROWS_WITH(grad(sum(exp(y)), {x}, {}, kGraph), Contains("own: it has no second derivative"));
  CHECK(grad(sum(exp(y)), {x})[0].defined());  // and the graph is still usable
  const Tensor low = x.detach().to(DType::bf16).require_grad();
  CHECK_THROWS_WITH(grad(sum(exp(layer_norm(low))), {low}, {}, kGraph),
                    Contains("layer_norm: it has no second derivative in bf16"));
  CHECK_THROWS_WITH(backward(sum(square(x)), {}, kGraph), Contains("create_graph is for grad()"));
  const Tensor w = tensor({{1.f, 2.f}}).require_grad(), rows = x.detach().to(DType::bf16).require_grad();
  CHECK_THROWS_WITH(grad(sum(linear(rows, w)), {rows}, {}, kGraph), Contains("linear: it has no second derivative"));
}

TEST_CASE("views, broadcasts, a choice of rows and leaves used twice keep their way to second gradients") {
  const Tensor ids = tensor({2, 0, 2});
  CHECK(complaint(
            [&](const auto& in) {
              const Tensor &x = in[0], &w = in[1], h = tanh(matmul(x, w)).transpose(0, 1);
              const std::vector<Tensor> halves = split(h, {1, 2}, 0);
              const Tensor y = cat({halves[1], halves[1] * h[0]}, 0), chosen = x[ids](Slice(), Slice(0, 1));
              return sum(y.reshape({-1}) * sum(exp(chosen * w[1]))) +
                     sum(softmax(x) * x.permute({1, 0}).expand({3, 3})) + norm(x * x) + logsumexp(h);
            },
            {entries({3, 3}), entries({3, 3})}) == "");
}

TEST_CASE("a checkpointed part has the second gradients of the part, its leaves' among them") {
  for (const bool nested : {false, true})
    CHECK(complaint(
              [&](const auto& in) {
                manual_seed(3);
                const auto part = [w = in[1]](const Tensor& h) { return dropout(tanh(matmul(h, w)), 0.5) * h; };
                const Tensor y = checkpoint(
                    [nested, part](const Tensor& h) { return nested ? checkpoint(part, h) : part(h); }, in[0]);
                return sum(y * exp(y) * in[0]);
              },
              {entries({3, 2}), entries({2, 2})}) == "");
}

TEST_CASE("where gradients are off and where activations are rounded, too, create_graph records") {
  const Tensor x = tensor({2.0}).require_grad();
  const Tensor y = x * x * x;
  const Tensor slope = [&] {
    const NoGrad no_grad;
    return grad(y, {x}, {}, kGraph)[0];
  }();
  CHECK(values(grad(slope, {x})[0]) == std::vector<double>{12});

  // 1.5 is exact in bf16; tanh keeps y, which is not.
  const Tensor many = full({2048}, 1.5f).require_grad();
  const SaveActivations rounded(DType::bf16);
  const Tensor second = grad(sum(grad(sum(tanh(many)), {many}, {}, kGraph)[0]), {many})[0];
  const double t = std::tanh(1.5);
  CHECK(std::abs(amin(second).item() + 2 * t * (1 - t * t)) < 4 * 0x1p-8);
}

TEST_CASE("a slope that is several ops is rounded to bf16 once") {
  const Tensor x = linspace(-3, 3, 200).to(DType::bf16).require_grad();
  const Tensor plain = grad(sum(gelu_tanh(x)), {x})[0], recorded = grad(sum(gelu_tanh(x)), {x}, {}, kGraph)[0];
  CHECK(amax(abs(recorded.to(DType::f64) - plain.to(DType::f64))).item() <= 0x1p-7);  // neighbours in [1, 2)
}

TEST_CASE("gradients of one graph can be taken twice, summed, and changed by a hook") {
  const Tensor x = tensor({2.0}).require_grad();
  const Tensor h = x * x, y = h * x;
  const Tensor twice = grad(y, {x}, {}, kGraph)[0] + grad(y, {x}, {}, kGraph)[0];
  CHECK(values(twice) == std::vector<double>{24});
  CHECK(values(grad(twice, {x}, {}, {.retain_graph = true})[0]) == std::vector<double>{24});
  on_grad(h, [](const Tensor& g) { return g * g; });  // dy/dx = x^2 + x^2 2 x
  const Tensor hooked = grad(y, {x}, {}, kGraph)[0];
  CHECK(values(hooked) == std::vector<double>{4 + 16});
  CHECK(values(grad(hooked, {x})[0]) == std::vector<double>{6 * 4 + 2 * 2});  // the 1 that flows to h is squared
}

TEST_CASE("a frozen leaf, a constant and a dtype on the way leave second gradients right") {
  const Tensor x = tensor({3.0}).require_grad(), frozen = tensor({5.0}).require_grad();
  require_grad(frozen, false);
  const Tensor slope = grad(x * x * frozen * exp(frozen * 0.0), {x}, {}, kGraph)[0];
  CHECK(values(grad(slope, {x})[0]) == std::vector<double>{10});
  const Tensor low = tensor({3.f}).require_grad();
  const Tensor wide = low.to(DType::f64);
  const Tensor third = grad(wide * wide * wide, {low}, {}, kGraph)[0];
  CHECK(third.dtype() == DType::f32);
  CHECK(grad(third, {low})[0].item() == 18);
}

TEST_CASE(
    "tensors that were changed in place or released, and constants, are refused instead of differentiated wrongly") {
  const Tensor x = tensor({3.0}).require_grad();
  Tensor h = exp(x);
  const Tensor slope = grad(h * h, {x}, {}, kGraph)[0];
  fill(h, 1);
  CHECK_THROWS_WITH(grad(slope, {x}), Contains("changed in place"));
  const Tensor again = grad(x * x * x, {x}, {}, kGraph)[0];
  grad(again, {x});
  CHECK_THROWS_WITH(grad(again, {x}), Contains("released"));
  CHECK_THROWS_WITH(grad(grad(x * 2.0, {x}, {}, kGraph)[0], {x}), Contains("does not depend on a leaf"));
  CHECK_THROWS_WITH(grad(grad(x * x, {x})[0], {x}), Contains("create_graph"));
}

TEST_CASE(
    "a rule that keeps a tensor other than inputs and outputs is refused if its second gradient would lack a term") {
  const Tensor x = tensor({3.0}).require_grad();
  const Tensor slope = 2.0 * x, y = square(detach(x));
  Tensor result = y;
  track("own", {&result}, {&x})->backward =
      differentiable([slope = save(slope)](Flow& g) { g.give(0, g.out() * slope); });
  CHECK(grad(result, {x}, {}, {.retain_graph = true})[0].item() == 6);
  CHECK_THROWS_WITH(grad(result, {x}, {}, kGraph), Contains("own: its rule keeps a tensor of shape [1]"));
}

TEST_CASE("linear_cross_entropy has second gradients") {
  for (const CrossEntropyOptions& o :
       {CrossEntropyOptions{},
        CrossEntropyOptions{.ignore_index = 2, .label_smoothing = 0.1, .reduction = Reduction::sum}})
    CHECK(complaint(
              [&](const auto& in) {
                return linear_cross_entropy(in[0], in[1], in[2], tensor({2, 0}), o);
              },
              {entries({2, 3}), entries({3, 3}), entries({3})}) == "");
}

TEST_CASE("linear_cross_entropy keeps no input: second gradients need inputs that are there and unchanged") {
  const Tensor x = entries({2, 3}).require_grad(), w = entries({3, 3}).require_grad();
  Tensor rows = x * 2.0;
  const std::weak_ptr<Storage> storage = rows.impl().storage;
  const Tensor loss = linear_cross_entropy(rows, w, {}, tensor({2, 0}));
  CHECK(grad(loss, {w}, {}, kGraph)[0].defined());
  rows = {};
  CHECK(storage.expired());
  CHECK_THROWS_WITH(grad(loss, {w}, {}, kGraph),
                    Contains("linear_cross_entropy: it has no second derivative (create_graph) without its x,"));
  CHECK(grad(loss, {w}, {}, {.retain_graph = true})[0].defined());
  const Tensor other = linear_cross_entropy(x, w, {}, tensor({2, 0}));
  fill(w, 1);
  CHECK_THROWS_WITH(grad(other, {x}, {}, kGraph), Contains("its weight [3, 3]") && Contains("was changed"));
}
