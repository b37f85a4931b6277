// compare_gradients and compare_trajectories: kinds of weight decay, Nesterov momentum, NaN in examples, parameters
// that the map leaves out, and counts of one.
#include "equivalence/compare/compare.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/equivalence/room.h"
#include "tests/equivalence/small_net.h"

namespace {

using Parameters = std::vector<Tensor>;
using OneOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)>;

// A linear layer, by the library or by hand.
struct Line : nn::Module {
  nn::Linear& l = add("l", nn::Linear(5, 3));
  bool by_hand;
  explicit Line(bool second) : by_hand(second) { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    return by_hand ? sum(unsqueeze(x, 1) * l.weight(), {2}) + l.bias() : l(x);
  }
};

template <class M> std::unique_ptr<M> made(bool second) {
  manual_seed(4);
  return std::make_unique<M>(second);
}

Comparison trained(const OneOptimizer& first, const OneOptimizer& second) {
  const auto make = [&](const Parameters& p, Which which) { return which == Which::first ? first(p) : second(p); };
  return compare_trajectories([] { return made<Line>(false); }, [] { return made<Line>(true); }, {}, cross_entropy_of,
                              make, small_batch, {.steps = 6});
}

OneOptimizer adam(double decay) {
  return [=](const Parameters& p) {
    return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 1e-2, .weight_decay = decay});
  };
}
OneOptimizer adamw(double decay) {
  return [=](const Parameters& p) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .weight_decay = decay});
  };
}
OneOptimizer momentum(bool nesterov) {
  return [=](const Parameters& p) {
    return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = nesterov});
  };
}

// Some rows of scores are masked entirely with the dtype's lowest number, so softmax gives them equal weights.
struct Masked : Line {
  using Line::Line;
  Tensor forward(const Tensor& x) override {
    const Tensor mask = tensor({{1., 1., 1.}, {0., 1., 0.}}).to(DType::u8).repeat({x.size(0) / 2, 1});
    const Tensor scores = Line::forward(x).masked_fill(mask, std::numeric_limits<double>::lowest());
    return scores.softmax(-1) + Line::forward(x);
  }
};

// Finite at these weights, NaN if the argument of the logarithm is moved to a larger number.
struct AtTheEdge : Line {
  using Line::Line;
  Tensor forward(const Tensor& x) override {
    const Tensor y = Line::forward(x);
    return y + 1e-9 * (1.5 - 1.5 * (y - y.detach()).exp() + 1e-300).log();
  }
};

}  // namespace

TEST_CASE("limits: controls that are NaN measure nothing") {
  const auto a = made<AtTheEdge>(false), b = made<AtTheEdge>(true);
  const Comparison c = expected(Verdict::undecided, compare_gradients(*a, *b, {}, cross_entropy_of, small_batch));
  CHECK(c.reason == "the first model, moved by one ulp, gives NaN: what rounding does was not measured");
}

TEST_CASE("limits: controls do not move the least number, with which rows are masked") {
  const auto a = made<Masked>(false), b = made<Masked>(true);
  expected(Verdict::equivalent, compare_gradients(*a, *b, {}, cross_entropy_of, small_batch));
}

TEST_CASE("limits: a decay of the gradient and a decay of the weights are told apart in both orders") {
  const Comparison coupled = expected(Verdict::different, trained(adamw(0.1), adam(0.1)));
  CHECK(coupled.likely_cause ==
        "another kind of weight decay: the second model adds it to the gradient, the first takes it off the weights");
  const Comparison decoupled = expected(Verdict::different, trained(adam(0.1), adamw(0.1)));
  CHECK(decoupled.likely_cause ==
        "another kind of weight decay: the second model takes it off the weights, the first adds it to the gradient");
  expected(Verdict::equivalent, trained(adam(0), adamw(0)));
  // Two different rates of the same kind of decay are not another kind of decay.
  const Comparison number = expected(Verdict::different, trained(adam(0.1), adam(0.2)));
  CHECK(number.likely_cause.empty());
}

TEST_CASE("limits: Nesterov's momentum in the second model alone is a difference of the update without a cause") {
  const Comparison c = expected(Verdict::different, trained(momentum(false), momentum(true)));
  REQUIRE(c.first_difference);
  CHECK(c.first_difference->step == 1);
  CHECK(c.first_difference->quantity == std::string("weights"));
  CHECK_THAT(c.reason, Contains("look at the update"));
  CHECK(c.likely_cause.empty());
  CHECK_THAT(c.sentence(), Contains("no cause was found; tested: weights that do not move and a learning rate"));
}

TEST_CASE("limits: NaN in the examples is undecided, and the examples are named") {
  const auto a = made<Line>(false), b = made<Line>(true);
  const Batches batches = [](int64_t i) {
    Examples e = small_batch(i);
    const NoGrad no_grad;
    fill(select(e.inputs, 0, 2), std::numeric_limits<double>::quiet_NaN());
    return e;
  };
  const Comparison c = expected(Verdict::undecided, compare_gradients(*a, *b, {}, cross_entropy_of, batches));
  CHECK_THAT(c.reason, Contains("the first model's loss is nan at point 1: the examples have NaN"));
  const auto rate = [](const Parameters& p) { return momentum(false)(p); };
  const Comparison path = expected(
      Verdict::undecided, compare_trajectories([] { return made<Line>(false); }, [] { return made<Line>(true); }, {},
                                               cross_entropy_of, rate, batches, {.steps = 3}));
  CHECK_THAT(path.sentence(), Contains("nan"));
}

TEST_CASE("limits: a parameter that the map leaves out although both models have it is named") {
  const auto a = made<Line>(false), b = made<Line>(true);
  const Comparison c = expected(
      Verdict::different, compare_gradients(*a, *b, ParameterMap().leave_out("l.bias"), cross_entropy_of, small_batch));
  CHECK(c.reason ==
        "the map leaves out l.bias, which both models have: leave_out() is for parameters of the first model alone");
}

TEST_CASE("limits: one gradient and one buffer are named in the singular") {
  struct One : nn::Module {
    nn::Parameter& w = add_parameter("w", randn({5}, {DType::f64}));
    Tensor& calls = add_buffer("calls", zeros({1}, {DType::f64}));
    bool second;
    explicit One(bool b) : second(b) {}
    Tensor forward(const Tensor& x) override {
      {
        const NoGrad no_graph;
        calls += 0.1;
      }
      return second ? sum(x * w(), {1}) * 2 : matmul(x, w());
    }
  };
  const Objective loss = [](nn::Module& m, const Examples& e) { return mean(square(m(e.inputs))); };
  const auto a = made<One>(false), b = made<One>(true);
  const Comparison c =
      expected(Verdict::different, compare_gradients(*a, *b, {}, loss, small_batch, {.inputs = false}));
  CHECK_THAT(c.reason, Contains("at point 1 the buffer agrees, and the loss and the gradient differ: look at"));
}
