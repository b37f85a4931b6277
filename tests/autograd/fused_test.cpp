// Fused ops against their reference:: compositions: values, every gradient, every subset of used outputs, thread
// counts.
#include "tests/support/catch.h"

#include <functional>

#include "autograd/engine.h"
#include "autograd/fused/add_norm.h"
#include "autograd/fused/mlp.h"
#include "autograd/fusion.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/kernel.h"
#include "core/system/parallel.h"
#include "tests/support/random.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::max_difference;
using test::randn;

namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Outputs of f, then the gradients of all inputs where cotangents reach only the outputs in the bit set `used`.
std::vector<Tensor> run(const Function& f, const std::vector<Tensor>& inputs, unsigned used) {
  std::vector<Tensor> leaves, taken, cotangents;
  for (const Tensor& x : inputs) leaves.push_back(require_grad(detach(x)));
  std::vector<Tensor> all = f(leaves);
  for (size_t i = 0; i < all.size(); ++i)
    if (used >> i & 1) {
      taken.push_back(all[i]);
      cotangents.push_back(randn(all[i].shape(), 100 + i, 0, 1, all[i].dtype()));
    }
  const auto gradients = grad(taken, leaves, cotangents);
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

void check_fused(const Function& f, const std::vector<Tensor>& inputs, unsigned outputs, double tolerance) {
  for (unsigned used = 1; used < 1u << outputs; ++used) {
    const auto fused = run(f, inputs, used);
    const auto composed = [&] {
      UseReference guard;
      return run(f, inputs, used);
    }();
    REQUIRE(fused.size() == composed.size());
    for (size_t i = 0; i < fused.size(); ++i) {
      INFO("outputs used " << used << ", tensor " << i);
      CHECK(max_difference(fused[i], composed[i]) <= tolerance);
    }
  }
}

std::vector<std::vector<double>> bits(const Function& f, const std::vector<Tensor>& inputs, unsigned outputs,
                                      int threads) {
  const int before = num_threads();
  set_num_threads(threads);
  std::vector<std::vector<double>> all;
  for (const Tensor& t : run(f, inputs, (1u << outputs) - 1)) all.push_back(t.to_vector<double>());
  set_num_threads(before);
  return all;
}

const NormSpec kSpecs[] = {{NormKind::none, 0, 1},     {NormKind::layer, 1e-5, 1}, {NormKind::rms, 1e-5, 1},
                           {NormKind::rms, 1e-3, 0.3}, {NormKind::crms, 1e-5, 1},  {NormKind::crms_isometric, 1e-6, 1}};

}  // namespace

TEST_CASE("add_norm is its composition") {
  for (const NormSpec& spec : kSpecs)
    for (int64_t width : {1, 5, 33, 129}) {
      const Tensor x = randn({3, 7, width}, 1), branch = randn({3, 7, width}, 2, 0.5), gain = randn({width}, 3, 1),
                   bias = randn({width}, 4);
      INFO(name_of(spec.kind) << " p " << spec.p << " width " << width);
      // A few roundings of numbers near 10 in f64; 1/root of a width of 1 may be some 100.
      check_fused(
          [&](const auto& v) {
            const AddNorm r = add_norm(v[0], v[1], spec, v[2], v[3]);
            return std::vector<Tensor>{r.sum, r.normed};
          },
          {x, branch, gain, bias}, 2, 2e-12);
      check_fused(
          [&](const auto& v) {
            const AddNorm r = add_norm(v[0], v[1], spec);
            return std::vector<Tensor>{r.sum, r.normed};
          },
          {x, branch}, 2, 2e-12);
    }
}

TEST_CASE("add_norm gradients agree with finite differences") {
  for (const NormSpec& spec : kSpecs) {
    const auto r = gradcheck(
        [&](const std::vector<Tensor>& v) {
          const AddNorm out = add_norm(v[0], v[1], spec, v[2], v[3]);
          return std::vector<Tensor>{out.sum, out.normed};
        },
        {randn({4, 11}, 5), randn({4, 11}, 6), randn({11}, 7, 1), randn({11}, 8)});
    INFO(name_of(spec.kind) << ' ' << r.message());
    CHECK(r.ok);
  }
}

TEST_CASE("mlp is its composition") {
  for (GeluForm form : {GeluForm::erf, GeluForm::tanh})
    for (int64_t hidden : {1, 40, 131, 1100})
      for (DType dtype : {DType::f64, DType::f32}) {
        const Tensor x = randn({70, 33}, 9, 0, 1, dtype), w1 = randn({hidden, 33}, 10, 0, 0.2, dtype),
                     b1 = randn({hidden}, 11, 0, 1, dtype), w2 = randn({50, hidden}, 12, 0, 0.1, dtype),
                     b2 = randn({50}, 13, 0, 1, dtype);
        // The gradients of the biases sum 70 terms of size up to 3; products sum up to 1100 of size 1.
        check_fused([&](const auto& v) { return std::vector<Tensor>{mlp(v[0], v[1], v[2], v[3], v[4], form)}; },
                    {x, w1, b1, w2, b2}, 1, epsilon(dtype) * 200);
      }
}

TEST_CASE("the bits of fused ops do not depend on the number of threads") {
  const Function norm = [](const auto& v) {
    const AddNorm r = add_norm(v[0], v[1], {}, v[2], v[3]);
    return std::vector<Tensor>{r.sum, r.normed};
  };
  const Function feed = [](const auto& v) {
    return std::vector<Tensor>{
        mlp(v[0], narrow(v[1], 0, 0, 300), {}, transpose(narrow(v[1], 0, 100, 300), 0, 1), v[2])};
  };
  for (DType dtype : {DType::f32, DType::f64}) {
    const std::vector<Tensor> inputs{randn({500, 200}, 13, 0, 1, dtype), randn({500, 200}, 14, 0, 1, dtype),
                                     randn({200}, 15, 1, 1, dtype), randn({200}, 16, 0, 1, dtype)};
    CHECK(bits(norm, inputs, 2, 1) == bits(norm, inputs, 2, 2));
    CHECK(bits(norm, inputs, 2, 1) == bits(norm, inputs, 2, 4));
    if (isa() == Isa::base) continue;  // its products are OpenBLAS's, whose sums hang on the threads (docs/numerics.md)
    CHECK(bits(feed, inputs, 1, 1) == bits(feed, inputs, 1, 2));
    CHECK(bits(feed, inputs, 1, 1) == bits(feed, inputs, 1, 4));
  }
}

TEST_CASE("add_norm in bf16 normalizes the sum as it is stored") {
  const Tensor x = randn({2, 50}, 17, 3, 1, DType::bf16), branch = randn({2, 50}, 18, 0, 1, DType::bf16);
  const AddNorm r = add_norm(x, branch, {});
  CHECK(max_difference(r.sum, add(x, branch)) == 0);
  CHECK(max_difference(r.normed, reference::add_norm(x, branch, {}).normed) == 0);
}

// Where the sum's rounding is as large as its spread: what is read back must be what was normalized.
TEST_CASE("add_norm in bf16 has the gradient of the sum as it is stored") {
  const auto row = [](const std::vector<double>& v) { return from_vector(v, {1, 4}).to(DType::bf16); };
  for (const DType gains : {DType::bf16, DType::f32}) {
    const Tensor x = require_grad(row({64, 64, 64, 64.5})), branch = row({.1, .12, .09, .11}),
                 gain = require_grad(ones({4}, {gains}));
    const AddNorm r = add_norm(x, branch, {}, gain);
    backward(sum(r.normed));
    const double root = 1 / std::sqrt(3.0);  // of 64, 64, 64, 64.5 the deviations are 1 : 1 : 1 : -3
    const Tensor expected = from_vector<double>({-root, -root, -root, 3 * root}, {1, 4});
    INFO("gain " << name_of(gains));
    CHECK(r.sum.to_vector<double>() == std::vector<double>{64, 64, 64, 64.5});
    CHECK(max_difference(r.normed, expected) <= 3 * root * 0x1p-8);
    CHECK(max_difference(gain.grad(), expected) <= 3 * root * 0x1p-8);
    // A result's sum is constant; 64 / 0.22^2 is what a rounding of the mean in f32 makes of that.
    CHECK(max_difference(x.grad(), zeros({1, 4})) <= 4 * 0x1p-24 * 64 / (0.22 * 0.22));
  }
}

TEST_CASE("fused ops refuse what does not fit") {
  const Tensor x = randn({2, 4}, 19);
  CHECK_THROWS_WITH(add_norm(x, randn({4}, 1), {}), Contains("add_norm: shapes [2, 4] and [4] differ"));
  CHECK_THROWS_WITH(add_norm(x, x, {}, randn({3}, 1)), Contains("gain [3] does not fit input [2, 4]"));
  CHECK_THROWS_WITH(mlp(x, randn({5, 4}, 1), randn({3}, 1), randn({2, 5}, 1), {}),
                    Contains("mlp: bias f64 [3] does not fit w1 f64 [5, 4]"));
}
