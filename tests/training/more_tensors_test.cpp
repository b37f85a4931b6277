// Batches of more than two tensors if a step is divided or done twice: ranks, rank_invariant, captured steps, comparisons.
// The third tensor has the weights of the examples, so a row that goes astray changes the loss.
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "distributed/world.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/thrown.h"
#include "training/steps/loop.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;

namespace {

Tensor f64(const std::vector<double>& v, const Dims& shape) { return from_vector(v, shape); }

// y = w x with w = 2. All losses, gradients and updates below are binary fractions of few digits.
struct Scale : nn::Linear {
  Scale() : nn::Linear(1, 1, {.bias = false}) {
    to(DType::f64);
    copy_into(weight, full({1, 1}, 2, {DType::f64}));
  }
};

Examples batch_of(int64_t step) {
  const double s = static_cast<double>(step);
  return {f64({1, 2, 3, 4}, {4, 1}), f64({1, 1, 1 + s, 1}, {4, 1}), {f64({1, 0, 2, 5}, {4, 1})}};
}

// sum u (w x - y)^2 / sum u
WeightedSum weighted(nn::Module& m, const Examples& e) {
  return {sum(e.more.at(0) * square(m(e.inputs) - e.targets)), sum(e.more.at(0))};
}
// mean u (w x - y)^2
Tensor weighted_mean(nn::Module& m, const Examples& e) { return mean(e.more.at(0) * square(m(e.inputs) - e.targets)); }

struct Course {
  std::vector<double> losses;
  double w = 2;
};

// Gradient descent by the formula. divisor: of the sum.
Course by_formula(int steps, double lr, double divisor) {
  Course c;
  for (int t = 0; t < steps; ++t) {
    const Examples e = batch_of(t);
    const auto x = e.inputs.to_vector<double>(), y = e.targets.to_vector<double>(), u = e.more[0].to_vector<double>();
    double loss = 0, slope = 0;
    for (size_t i = 0; i < 4; ++i) {
      loss += u[i] * (c.w * x[i] - y[i]) * (c.w * x[i] - y[i]);
      slope += 2 * u[i] * x[i] * (c.w * x[i] - y[i]);
    }
    c.losses.push_back(loss / divisor);
    c.w -= lr * slope / divisor;
  }
  return c;
}

Course trained(int steps, double lr, const Objective& objective, StepOptions options = {}) {
  Scale net;
  optim::Sgd sgd(net.parameters());
  Step step(net, sgd, objective, options);
  Course c;
  for (int t = 0; t < steps; ++t) c.losses.push_back(step(batch_of(t), lr).loss);
  c.w = net.weight.item();
  return c;
}

// lr = 2^-6 and divisors 4 and 8: every number of four steps fits into 53 bits.
void check_equal(const Course& found, const Course& formula) {
  CHECK(found.losses == formula.losses);
  CHECK(found.w == formula.w);
}

constexpr double kRate = 1. / 64;

}  // namespace

TEST_CASE("more tensors: ranks take their rows of each, and train as the formula does") {
  const Course sum_formula = by_formula(3, kRate, 8), mean_formula = by_formula(3, kRate, 4);
  check_equal(trained(3, kRate, weighted), sum_formula);
  check_equal(trained(3, kRate, weighted_mean), mean_formula);
  for (const int ranks : {2, 3, 4})
    for (const int64_t accumulate : {1, 2}) {
      if (4 / accumulate < ranks) continue;
      INFO(ranks << " ranks, " << accumulate << " parts");
      std::vector<Course> sums(static_cast<size_t>(ranks)), means = sums;
      run_ranks(ranks, [&](Group& g) {
        sums[static_cast<size_t>(g.rank())] = trained(3, kRate, weighted, {.accumulate = accumulate, .group = &g});
        means[static_cast<size_t>(g.rank())] =
            trained(3, kRate, weighted_mean, {.accumulate = accumulate, .group = &g});
      });
      for (const Course& c : sums) check_equal(c, sum_formula);
      for (const Course& c : means) check_equal(c, mean_formula);
    }
}

TEST_CASE("more tensors: with rank_invariant each rank has the rows of its micro-batches") {
  const Course formula = by_formula(3, kRate, 8);
  for (const int ranks : {1, 2, 4}) {
    std::vector<Course> all(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](Group& g) {
      all[static_cast<size_t>(g.rank())] =
          trained(3, kRate, weighted, {.accumulate = 4, .group = &g, .rank_invariant = true});
    });
    for (const Course& c : all) check_equal(c, formula);
  }
}

TEST_CASE("more tensors: a rank with another third tensor is found, and named") {
  const std::string said = test::thrown([&] {
    run_ranks(2, [&](Group& g) {
      Scale net;
      Examples batch = batch_of(0);
      if (g.rank() == 1) batch.more[0] = f64({1, 0, 2, 4}, {4, 1});
      differentiate(net, weighted, batch, 1, &g);
    });
  });
  CHECK_THAT(said, Contains("more[0] of the batch"));
}

TEST_CASE("more tensors: a captured step reads the third tensor of each batch") {
  Scale net;
  optim::Sgd sgd(net.parameters());
  Step step(net, sgd, weighted, {.captured = true});
  double w = 2;
  for (int t = 0; t < 6; ++t) {  // on a device, a graph from the third step on
    Examples e = batch_of(0);
    e.more[0] = f64({static_cast<double>(t % 2), static_cast<double>(1 - t % 2), 0, 0}, {4, 1});
    const double x = t % 2 ? 1 : 2;
    CHECK(step(e, kRate).loss == (w * x - 1) * (w * x - 1));
    w -= kRate * 2 * x * (w * x - 1);
    CHECK(net.weight.item() == w);
  }
}

TEST_CASE("more tensors: a loop names the one that is not finite") {
  Scale net;
  optim::Sgd sgd(net.parameters());
  Step step(net, sgd, weighted);
  Loop loop(
      step,
      [](int64_t t) {
        Examples e = batch_of(t);
        if (t == 1) e.more[0] = f64({1, 0, NAN, 5}, {4, 1});
        return e;
      },
      [](int64_t) { return kRate; });
  CHECK_THROWS_WITH(loop.run(3),
                    Contains("loop: step 2: the loss is") && Contains("tensor 2 of the batch is not finite"));
}
