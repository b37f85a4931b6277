// Objectives that return a mean, and a sum with its weight: one loss and one gradient in any number of micro-batches.
#include "training/steps/objective.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using Doubles = std::vector<double>;

namespace {

constexpr int kIn = 3;

// Sums of some 20 terms of size 1 to 10.
void check_near(const Doubles& found, const Doubles& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 200 * epsilon(DType::f64));
}

// A linear classifier of 3 classes on 6 examples, in f64. run(): the loss, then the gradient.
struct Classification {
  nn::Linear model{kIn, 3, {.bias = false}};
  Examples batch;
  explicit Classification(const std::vector<int64_t>& targets) {
    Generator g{4, 0};
    model.to(DType::f64);
    copy_into(model.weight, randn({3, kIn}, {DType::f64}, g));
    batch = {randn({6, kIn}, {DType::f64}, g), from_vector(targets, {6})};
  }
  Doubles run(const Objective& objective, int64_t parts) {
    Doubles all = {differentiate(model, objective, batch, parts)};
    for (const double d : model.parameters()[0].grad().to_vector<double>()) all.push_back(d);
    return all;
  }
  // sum_n w[t_n] (ln sum_j exp(z_nj) - z_nt) / sum_n w[t_n] with z = x W^T, over the targets that are not `ignored`.
  Doubles expected(const Doubles& weights, int64_t ignored) {
    const Doubles w = model.parameters()[0].to_vector<double>(), x = batch.inputs.to_vector<double>();
    const std::vector<int64_t> t = batch.targets.to_vector<int64_t>();
    Doubles all(1 + 3 * kIn);
    double total = 0;
    for (size_t n = 0; n < t.size(); ++n) {
      if (t[n] == ignored) continue;
      double z[3] = {}, sum = 0;
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < kIn; ++i) z[j] += w[j * kIn + i] * x[n * kIn + i];
      for (const double v : z) sum += std::exp(v);
      const double own = weights[t[n]];
      total += own;
      all[0] += own * (std::log(sum) - z[t[n]]);
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < kIn; ++i)
          all[1 + j * kIn + i] += own * (std::exp(z[j]) / sum - (j == t[n])) * x[n * kIn + i];
    }
    for (double& v : all) v /= total;
    return all;
  }
};

}  // namespace

TEST_CASE("step: a sum with its weight is the whole batch's objective in any parts; a mean is over targets") {
  const Doubles ones(3, 1), own = {0.25, 1, 4};
  const Tensor weight = from_vector(own, {3});
  const auto by = [](const CrossEntropyOptions& o) -> Objective {
    return [o](nn::Module& m, const Examples& b) { return cross_entropy_sum(m(b.inputs), b.targets, o); };
  };
  for (const int64_t parts : {1, 2, 3, 6}) {
    INFO(parts << " parts");
    Classification c({0, 1, 2, 0, 0, 1});
    check_near(c.run(by({.ignore_index = 0}), parts), c.expected(ones, 0));
    check_near(c.run(by({.weight = weight}), parts), c.expected(own, -100));
    check_near(c.run(by({.ignore_index = 1, .weight = weight}), parts), c.expected(own, 1));
    check_near(c.run(by({}), parts), c.expected(ones, -100));
    check_near(c.run(cross_entropy_of, parts), c.expected(ones, -100));
    check_near({by({.ignore_index = 0})(c.model, c.batch).item()}, {c.expected(ones, 0)[0]});
  }
  // An update reads the gradient of the mean, also for a parameter outside the model.
  for (const int64_t parts : {1, 3}) {
    Classification c({0, 1, 2, 0, 0, 1});
    const Tensor shift = require_grad(zeros({1}, {DType::f64}));
    const Objective shifted = [&](nn::Module& m, const Examples& b) -> WeightedSum {
      const WeightedSum s = cross_entropy_sum(m(b.inputs), b.targets, {.ignore_index = 0});
      return {s.sum + sum(shift) * s.weight, s.weight};
    };
    const Tensor w = c.model.parameters()[0];
    const Doubles expected = c.expected(ones, 0), before = w.to_vector<double>();
    optim::Sgd sgd({w, shift}, {.lr = 1});
    CHECK(Step(c.model, sgd, shifted, {.accumulate = parts})(c.batch, 0.5).loss == Approx(expected[0]).epsilon(1e-13));
    Doubles moved = before;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= 0.5 * expected[1 + i];
    check_near(w.to_vector<double>(), moved);
    check_near(shift.to_vector<double>(), {-0.5});
  }
  Classification c({0, 1, 2, 0, 0, 1});
  const Objective wide = [](nn::Module& m, const Examples& b) -> WeightedSum {
    return {sum(m(b.inputs)), ones_like(b.targets)};
  };
  CHECK_THROWS_WITH(differentiate(c.model, wide, c.batch), Contains("sum [] and weight [6], expected one number each"));
}

TEST_CASE(
    "objective: if all targets are ignored the loss and all gradients are 0, in any parts, with and without weights") {
  const Tensor weight = from_vector(Doubles{0.25, 1, 4}, {3});
  for (const int64_t parts : {1, 2, 3})
    for (const bool weighted : {false, true}) {
      INFO(parts << " parts" << (weighted ? ", weighted" : ""));
      const CrossEntropyOptions o{.weight = weighted ? weight : Tensor()};
      Classification c(std::vector<int64_t>(6, -100));
      const Objective mean = [o](nn::Module& m, const Examples& b) { return cross_entropy(m(b.inputs), b.targets, o); };
      const Objective sums = [o](nn::Module& m, const Examples& b) {
        return cross_entropy_sum(m(b.inputs), b.targets, o);
      };
      for (const Objective& objective : {mean, sums}) CHECK(c.run(objective, parts) == Doubles(1 + 3 * kIn));
      const Doubles before = c.model.weight.to_vector<double>();
      optim::Sgd sgd(c.model.parameters(), {.lr = 1});
      CHECK(Step(c.model, sgd, mean, {.accumulate = parts})(c.batch).loss == 0);
      CHECK(c.model.weight.to_vector<double>() == before);
      // All targets of the first part are ignored if there are several parts.
      Classification some({-100, -100, -100, 1, -100, 2});
      check_near(some.run(sums, parts), some.expected(weighted ? Doubles{0.25, 1, 4} : Doubles(3, 1), -100));
      if (!weighted) check_near(some.run(mean, parts), some.expected(Doubles(3, 1), -100));
    }
}
