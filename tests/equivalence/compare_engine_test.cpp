// compare_gradients and compare_trajectories: the compared quantities, the list of quantities that are not compared,
// and undecided cases.
#include "equivalence/compare/compare.h"

#include <set>

#include "nn/group_norm.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "tests/equivalence/small_net.h"

namespace {

// One layer in two implementations: fused and composed.
struct Layer : nn::Module {
  nn::Linear& l = add("l", nn::Linear(8, 4));
  bool composed;
  explicit Layer(bool composed) : composed(composed) { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    if (!composed) return l(x);
    const Tensor w = transpose(l.weight(), 0, 1);  // adds in another order
    return matmul(narrow(x, 1, 4, 4), narrow(w, 0, 4, 4)) + l.bias() + matmul(narrow(x, 1, 0, 4), narrow(w, 0, 0, 4));
  }
};

Batches rows(const Dims& shape, int64_t classes) {
  return [=](int64_t i) {
    Generator g{7, static_cast<uint64_t>(i) << 20};
    const Tensor x = randn(shape, {DType::f64}, g);
    return Examples{x, randint(0, classes, {shape[0]}, kCpu, g)};
  };
}

template <class M> MakeModel makes(bool second) {
  return [=] {
    manual_seed(1);
    return std::make_unique<M>(second);
  };
}

template <class M>
Comparison gradients_of(const Objective& loss = cross_entropy_of, const CompareOptions& o = {},
                        const ParameterMap& map = {}) {
  const auto a = makes<M>(false)(), b = makes<M>(true)();
  return compare_gradients(*a, *b, map, loss, rows({12, 8}, 4), o);
}

MakeOptimizer with_rate(double lr) {
  return [=](const std::vector<Tensor>& p) { return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = lr}); };
}
const MakeOptimizer kPlain = with_rate(0.1);

template <class M>
Comparison paths_of(const MakeOptimizer& optimizer = kPlain, const Objective& loss = cross_entropy_of,
                    const Batches& batches = rows({12, 8}, 4), const CompareOptions& o = {}) {
  return compare_trajectories(makes<M>(false), makes<M>(true), {}, loss, optimizer, batches, o);
}

// SGD whose step() first scales the gradients in place, to a total norm of `norm`.
struct Clipping : optim::Optimizer {
  Clipping(const std::vector<Tensor>& p, double norm)
      : Optimizer("clipping", p.size()), parameters(p), sgd(p, {.lr = 0.1}), norm(norm) {
    add_group(p, 0.1);
  }
  void step(double) override {
    const NoGrad no_grad;
    const double size = optim::grad_norm(parameters);
    for (const Tensor& p : parameters) copy_into(p.grad(), p.grad() * (norm / size));
    sgd.step();
  }
  std::vector<Tensor> parameters;
  optim::Sgd sgd;
  double norm;
};

// The loss. For the second model its gradient is multiplied by `factor`.
template <class M> Objective with_factor(double factor) {
  return [=](nn::Module& m, const Examples& e) {
    const Tensor l = cross_entropy_of(m, e);
    return dynamic_cast<M&>(m).composed ? l * factor - detach(l) * (factor - 1) : l;
  };
}

}  // namespace

TEST_CASE("engine: gradients are compared as the backward left them, whatever step() does to them in place") {
  const MakeOptimizer clips = [](const std::vector<Tensor>& p) { return std::make_unique<Clipping>(p, 0.01); };
  const Comparison c = expected(Verdict::different, paths_of<Layer>(clips, with_factor<Layer>(4)));
  REQUIRE(c.first_difference);
  CHECK(c.first_difference->step == 1);
  CHECK(c.first_difference->quantity == std::string("gradient"));
  CHECK(std::abs(c.first_difference->place.deviation - 3) < 1e-10);  // 4 g - g, relative to g
  expected(Verdict::equivalent, paths_of<Layer>(clips));
}

TEST_CASE("engine: where gradients agree and updated weights do not, the update is named, at any step") {
  // Clips only the second model's gradients, from step `begin` on.
  for (const int begin : {1, 7}) {
    struct Late : Clipping {
      Late(const std::vector<Tensor>& p, int begin) : Clipping(p, 0.01), left(begin) {}
      void step(double) override { --left > 0 ? sgd.step() : Clipping::step(1); }
      int left;
    };
    const MakeOptimizer late = [=](const std::vector<Tensor>& p, Which which) -> std::unique_ptr<optim::Optimizer> {
      if (which == Which::first) return kPlain(p, which);
      return std::make_unique<Late>(p, begin);
    };
    const Comparison c = expected(Verdict::different, paths_of<Layer>(late));
    REQUIRE(c.first_difference);
    CHECK(c.first_difference->step == begin);
    CHECK(c.first_difference->quantity == std::string("weights"));
    CHECK_THAT(c.sentence(), Contains(text("at step ", begin, " the loss and all 2 gradients agree, and ")) &&
                                 Contains("look at the update"));
    CHECK_THAT(c.sentence(), !Contains("commute"));  // no map is involved
  }
}

namespace {

// Passes x through an op whose backward multiplies only the input's gradient by `factor`.
Tensor bent(const Tensor& x, double factor) {
  const Tensor y = detach(x) * 1.0;
  if (autograd::Node* n = track("bent", {&y}, {&x})) n->backward = [=](Flow& g) { g.give(0, g.out() * factor); };
  return y;
}

struct BentInput : Layer {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return Layer::forward(composed ? bent(x, 1.5) : x); }
};

// Keeps an exponential moving average of the rows in a buffer; `share` is the weight of the new rows.
struct Averaging : Layer {
  Tensor& seen = add_buffer("seen", zeros({8}, {DType::f64}));
  double share = 0.1;
  using Layer::Layer;
  Tensor forward(const Tensor& x) override {
    {
      const NoGrad no_grad;
      const Tensor now = composed ? sum(x, {0}) / static_cast<double>(x.size(0)) : mean(x, {0});
      copy_into(seen, seen * (1 - share) + now * share);
    }
    return Layer::forward(x);
  }
};
struct AveragingOtherwise : Averaging {
  explicit AveragingOtherwise(bool composed) : Averaging(composed) { share = composed ? 0.2 : 0.1; }
};
// The second model starts with another average.
struct AveragingElsewhere : Averaging {
  explicit AveragingElsewhere(bool composed) : Averaging(composed) { fill(seen, composed ? 1 : 0); }
};

}  // namespace

TEST_CASE("engine: gradients of the inputs are compared") {
  const Comparison c = expected(Verdict::different, gradients_of<BentInput>());
  REQUIRE(c.first_difference);
  CHECK(c.first_difference->place.tensor == "inputs");
  CHECK(std::abs(c.first_difference->place.deviation - 0.5) < 1e-10);
  CHECK(c.likely_cause.empty());
  CHECK_THAT(c.sentence(), Contains("gradient of inputs: "));
  CHECK_THAT(expected(Verdict::equivalent, gradients_of<BentInput>(cross_entropy_of, {.inputs = false})).sentence(),
             Contains("; not compared: gradients of inputs"));
  expected(Verdict::equivalent, gradients_of<Layer>());
}

TEST_CASE("engine: a loss that makes its inputs leaves is compared without their gradients, and that is said") {
  const Objective penalty = [](nn::Module& m, const Examples& e) {
    const Tensor loss = cross_entropy(m(require_grad(e.inputs)), e.targets);
    set_grad(e.inputs, {});
    return loss;
  };
  const auto batches = [](int64_t i) {
    Examples e = rows({12, 8}, 4)(i);
    e.inputs = clone(e.inputs);
    return e;
  };
  const auto a = makes<Layer>(false)(), b = makes<Layer>(true)();
  const Comparison c = expected(Verdict::equivalent, compare_gradients(*a, *b, {}, penalty, batches));
  CHECK_THAT(c.sentence(), Contains("not compared: gradients of inputs"));
}

TEST_CASE("engine: buffers are compared after a step that began with the same, others are named") {
  CHECK(expected(Verdict::equivalent, gradients_of<Averaging>()).not_compared.empty());
  const Comparison other = expected(Verdict::different, gradients_of<AveragingOtherwise>());
  REQUIRE(other.first_difference);
  CHECK(other.first_difference->quantity == std::string("buffer"));
  CHECK(other.first_difference->place.tensor == "seen");
  CHECK(std::abs(other.first_difference->place.deviation - 1) < 1e-10);  // twice the step from 0
  CHECK_THAT(expected(Verdict::equivalent, gradients_of<AveragingElsewhere>()).sentence(),
             Contains("; not compared: seen"));
  CHECK_THAT(expected(Verdict::equivalent, paths_of<Averaging>()).sentence(),
             Contains("; not compared: gradients of inputs"));
  CHECK_THAT(expected(Verdict::different, paths_of<AveragingOtherwise>()).sentence(),
             Contains("after step 20 the loss, all 2 gradients and all 2 weights agree, and the buffer differs: look "
                      "at the buffers that the pass changes\n  "
                      "buffer of seen: "));
}

TEST_CASE("engine: an optimizer that holds a part of the parameters is no difference, and it is said") {
  const MakeOptimizer part = [](const std::vector<Tensor>& p) {
    return std::make_unique<optim::Sgd>(std::vector<Tensor>{p[0]}, optim::SgdOptions{.lr = 0.1});
  };
  const Comparison c = expected(Verdict::equivalent, paths_of<Layer>(part));
  CHECK_THAT(c.sentence(), Contains("the optimizer of the first model holds 1 of its 2 parameters") &&
                               Contains("the optimizer of the second model holds 1 of its 2 parameters"));
}

namespace {

struct Counting : Layer {  // the output of one of the two models, or of both, depends on the number of calls
  int calls = 0;
  bool counts;
  Counting(bool composed, bool counts) : Layer(composed), counts(counts) {}
  Tensor forward(const Tensor& x) override {
    ++calls;
    return counts ? Layer::forward(x) * (1 + 1e-3 * (calls % 7)) : Layer::forward(x);
  }
};
struct FirstCounts : Counting {
  explicit FirstCounts(bool second) : Counting(second, !second) {}
};
struct SecondCounts : Counting {
  explicit SecondCounts(bool second) : Counting(second, second) {}
};
struct BothCount : Counting {
  explicit BothCount(bool second) : Counting(second, true) {}
};
// Draws random numbers that the comparison does not seed.
struct Drawing : Layer {
  inline static Generator own{5, 0};
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return Layer::forward(x) * (1 + 1e-3 * rand({4}, {DType::f64}, own)); }
};

}  // namespace

TEST_CASE("engine: a model that does not repeat itself is undecided, before anything else is compared") {
  CHECK_THAT(expected(Verdict::undecided, gradients_of<FirstCounts>()).sentence(),
             StartsWith("undecided: the first model is not repeatable: ") && Contains("its loss is "));
  CHECK_THAT(expected(Verdict::undecided, gradients_of<SecondCounts>()).sentence(),
             StartsWith("undecided: the second model is not repeatable: "));
  CHECK_THAT(expected(Verdict::undecided, gradients_of<Drawing>()).sentence(),
             Contains("first model is not repeatable"));
  CHECK_THAT(expected(Verdict::undecided, paths_of<Drawing>()).sentence(), Contains("first model is not repeatable"));
  // Copies that count their own steps agree, since each is trained from its first step.
  expected(Verdict::equivalent, paths_of<BothCount>());
}

TEST_CASE("engine: a comparison calls the loss at most 1.5 times as often as it needs gradients; a cause costs more") {
  int64_t calls = 0;
  const Objective counted = [&](nn::Module& m, const Examples& e) {
    ++calls;
    return cross_entropy_of(m, e);
  };
  for (const auto& [points, controls] : {std::pair{5, 4}, {3, 2}, {1, 8}}) {
    calls = 0;
    expected(Verdict::equivalent, gradients_of<Layer>(counted, {.points = points, .controls = controls}));
    CHECK(calls == points * (controls + 2) + 2);  // at the first point both models run once more
  }
  CHECK(5 * (4 + 2) + 2 <= 1.5 * 5 * (4 + 2));  // for the default options
  // Searching for a cause happens only after a difference, and costs at most five times as much.
  calls = 0;
  expected(Verdict::different, gradients_of<Layer>([&](nn::Module& m, const Examples& e) {
             ++calls;
             return with_factor<Layer>(4)(m, e);
           }));
  CHECK(calls <= (1.5 + 5) * 5 * (4 + 2));
}

namespace {

// Only one model has the parameter t, with value 1.
struct Scaled : Layer {
  bool frozen;
  nn::Parameter& t = add_parameter("t", composed ? Tensor() : ones({1}, {DType::f64}));
  explicit Scaled(bool composed, bool frozen = true) : Layer(composed), frozen(frozen) {
    if (!composed) require_grad(t, !frozen);
  }
  Tensor forward(const Tensor& x) override { return composed ? Layer::forward(x) : Layer::forward(x) * t(); }
};
struct ScaledTrained : Scaled {
  explicit ScaledTrained(bool composed) : Scaled(composed, false) {}
};
// x t and x t^2 are equal only for the value 1 of this frozen parameter.
struct ScaledBoth : Layer {
  nn::Parameter& t = add_parameter("t", ones({1}, {DType::f64}));
  explicit ScaledBoth(bool composed) : Layer(composed) { require_grad(t, false); }
  Tensor forward(const Tensor& x) override { return Layer::forward(x) * (composed ? t() * t() : t()); }
};
struct Positive : Layer {
  nn::Parameter& s = add_parameter("s", ones({1}, {DType::f64}));
  using Layer::Layer;
  Tensor forward(const Tensor& x) override {
    return Layer::forward(composed ? x * exp(neg(log(s()))) : x / exp(log(s())));
  }
};

}  // namespace

TEST_CASE("engine: frozen parameters, and those that the map leaves out, keep their values") {
  ParameterMap map;
  map.leave_out("t");
  CHECK_THAT(expected(Verdict::equivalent, gradients_of<Scaled>(cross_entropy_of, {}, map)).sentence(),
             Contains("; not compared: t"));
  CHECK_THAT(expected(Verdict::equivalent, gradients_of<ScaledTrained>(cross_entropy_of, {}, map)).sentence(),
             Contains("; not compared: t"));
  expected(Verdict::equivalent, gradients_of<ScaledBoth>());
}

TEST_CASE("engine: NaN in the first model at drawn weights is undecided; options keep near the present weights") {
  const Comparison drawn = expected(Verdict::undecided, gradients_of<Positive>());
  CHECK_THAT(drawn.sentence(),
             Contains("the first model's loss is nan at point") && Contains("CompareOptions::perturb"));
  for (const double perturb : {0.0, 0.5})
    expected(Verdict::equivalent, gradients_of<Positive>(cross_entropy_of, {.perturb = perturb}));
  CHECK_THROWS_WITH(gradients_of<Positive>(cross_entropy_of, {.perturb = 1}), Contains("perturb is 1, expected"));
  // SGD makes s negative in its first step.
  const Objective falls = [](nn::Module& m, const Examples& e) {
    return cross_entropy_of(m, e) + sum(log(dynamic_cast<Positive&>(m).s()));
  };
  CHECK_THAT(expected(Verdict::undecided, paths_of<Positive>(with_rate(2), falls)).sentence(),
             Contains("undecided: the first model's loss is nan at step 2"));
  // NaN in only the second model is a difference.
  struct Broken : Layer {
    using Layer::Layer;
    Tensor forward(const Tensor& x) override { return Layer::forward(x) * (composed ? NAN : 1); }
  };
  expected(Verdict::different, gradients_of<Broken>());
}

TEST_CASE("engine: factories that give nothing are named") {
  CHECK_THROWS_WITH(paths_of<Layer>(MakeOptimizer([](const std::vector<Tensor>&) { return nullptr; })),
                    Contains("make_optimizer gave no optimizer"));
  const auto compare = [](const MakeModel& a, const MakeModel& b) {
    compare_trajectories(a, b, {}, cross_entropy_of, kPlain, rows({12, 8}, 4));
  };
  CHECK_THROWS_WITH(compare(makes<Layer>(false), [] { return nullptr; }), Contains("make_b gave no model"));
  CHECK_THROWS_WITH(compare([] { return nullptr; }, makes<Layer>(true)), Contains("make_a gave no model"));
}

namespace {
// An autoencoder: its targets are its inputs.
struct Same8 : nn::Module {
  nn::Linear& l = add("l", nn::Linear(8, 8));
  bool composed;
  explicit Same8(bool composed) : composed(composed) { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    const Tensor y = l(x);
    return composed ? y * sigmoid(y) : silu(y);
  }
};
}  // namespace

TEST_CASE("engine: one batch without targets, with unused targets, or with one row is enough for trajectories") {
  const Objective reconstruction = [](nn::Module& m, const Examples& e) { return mse_loss(m(e.inputs), e.inputs); };
  for (const int64_t count : {6, 1})
    for (const bool targets : {false, true}) {
      INFO(count << " rows, targets " << targets);
      const auto batch = [&](int64_t) {
        Examples e = rows({count, 8}, 3)(0);
        if (!targets) e.targets = {};
        return e;
      };
      const Comparison c =
          expected(Verdict::equivalent, paths_of<Same8>(kPlain, reconstruction, batch, {.may_be_identical = true}));
      CHECK(c.horizon.steps == 20);
    }
  expected(Verdict::equivalent, paths_of<Layer>(kPlain, cross_entropy_of, [](int64_t) { return rows({1, 8}, 4)(0); }));
}

TEST_CASE("engine: other seeds move the controls otherwise, in points and in trajectories") {
  std::set<double> points, paths;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    points.insert(gradients_of<Layer>(cross_entropy_of, {.seed = seed, .perturb = 0}).control);
    paths.insert(paths_of<Layer>(kPlain, cross_entropy_of, rows({12, 8}, 4), {.seed = seed}).control);
  }
  CHECK(points.size() > 1);
  CHECK(paths.size() > 1);
}

TEST_CASE("engine: equal bits throughout are undecided, and the option that accepts them is named") {
  struct Twin : Layer {
    explicit Twin(bool) : Layer(false) {}
  };
  for (const Comparison& c : {gradients_of<Twin>(), paths_of<Twin>()}) {
    expected(Verdict::undecided, c);
    CHECK_THAT(c.sentence(),
               Contains("equal to the last bit at every") && Contains("CompareOptions::may_be_identical"));
    CHECK_THAT(c.sentence(), !Contains("with itself"));
  }
  expected(Verdict::equivalent, gradients_of<Twin>(cross_entropy_of, {.may_be_identical = true}));
}

TEST_CASE("engine: a rate of 0, an optimizer of another model, and a model without gradients name themselves") {
  CHECK_THAT(expected(Verdict::undecided, paths_of<Layer>(with_rate(0))).sentence(),
             Contains("the optimizer of the first model changes no weight (a rate of 0?)"));
  const Layer other(false);
  const MakeOptimizer wrong = [&](const std::vector<Tensor>&) {
    return std::make_unique<optim::Sgd>(other.parameters(), optim::SgdOptions{.lr = 0.1});
  };
  CHECK_THAT(expected(Verdict::undecided, paths_of<Layer>(wrong)).sentence(),
             Contains("changes no weight") && Contains("the first model holds 0 of its 2 parameters"));

  const auto a = makes<Layer>(false)(), b = makes<Layer>(true)();
  const Objective of_first = [&](nn::Module&, const Examples& e) { return cross_entropy_of(*a, e); };
  CHECK_THAT(expected(Verdict::different, compare_gradients(*a, *b, {}, of_first, rows({12, 8}, 4))).sentence(),
             Contains("cause: a loss that passes no gradient to the second model: it does not use the model"));
  const Objective of_second = [&](nn::Module&, const Examples& e) { return cross_entropy_of(*b, e); };
  CHECK_THAT(expected(Verdict::undecided, compare_gradients(*a, *b, {}, of_second, rows({12, 8}, 4))).sentence(),
             Contains("no parameter of the first model gets a gradient"));
}

TEST_CASE("engine: AdamW in f32 that rounding moves is undecided, with a tensor and an advice that helps") {
  // The gradient of `pair` is (1, 1e-7), and one ulp of the weights changes the small entry by a tenth. For Adam the
  // small entry causes a full step.
  struct Net : SmallNet {
    nn::Parameter& pair = add_parameter("pair", ones({2}));
    explicit Net(Form form) : SmallNet({.form = form}) { to(DType::f32); }
  };
  const Objective loss = [](nn::Module& m, const Examples& e) {
    Net& net = dynamic_cast<Net&>(m);
    const Tensor phase = sum(detach(net.up1.weight).to(DType::f64)) * 1e7;
    const Tensor slope = cat({ones({1}), reshape((1 + 0.1 * sin(phase)) * 1e-7, {1}).to(DType::f32)}, 0);
    return cross_entropy(m(e.inputs.to(DType::f32)), e.targets) + sum(net.pair * slope);
  };
  const auto trained = [&](const MakeOptimizer& optimizer) {
    const auto net = [](Form form) -> MakeModel {
      return [=] {
        manual_seed(3);
        return std::make_unique<Net>(form);
      };
    };
    return compare_trajectories(net(Form::layer_norm), net(Form::rms_norm), {}, loss, optimizer, small_batch);
  };
  const auto adamw = [](double eps) -> MakeOptimizer {
    return [=](const std::vector<Tensor>& p) {
      return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .eps = eps});
    };
  };
  const Comparison c = expected(Verdict::undecided, trained(adamw(1e-8)));
  CHECK_THAT(c.sentence(), Contains("; rounding moves pair furthest") && Contains("an eps of 1e-5, or SGD"));
  expected(Verdict::equivalent, trained(adamw(1e-5)));
  expected(Verdict::equivalent, trained(kPlain));
}

TEST_CASE("engine: the two models may have optimizers of their own") {
  // AdamW, and the same decay written out before AdamW without decay.
  struct Decayed : optim::Optimizer {
    explicit Decayed(const std::vector<Tensor>& p)
        : Optimizer("decayed", p.size()), parameters(p), adam(p, {.lr = 1e-2, .weight_decay = 0}) {
      add_group(p, 1e-2);
    }
    void step(double) override {
      const NoGrad no_grad;
      for (const Tensor& p : parameters) copy_into(p, detach(p) * (1 - 1e-2 * 0.1));
      adam.step();
    }
    std::vector<Tensor> parameters;
    optim::AdamW adam;
  };
  const auto two = [](double decay) -> MakeOptimizer {
    return [=](const std::vector<Tensor>& p, Which which) -> std::unique_ptr<optim::Optimizer> {
      if (which == Which::second) return std::make_unique<Decayed>(p);
      return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .weight_decay = decay});
    };
  };
  // A rate of 0.1 / t in step t, by set_lr() or by scaling the gradients.
  struct Scheduled : optim::Optimizer {
    Scheduled(const std::vector<Tensor>& p, bool scales, int later)
        : Optimizer("scheduled", p.size()), sgd(p, {.lr = 0.1}), scales(scales), later(later) {
      add_group(p, 0.1);
    }
    void step(double) override {
      const int t = ++taken < 3 ? taken : taken + later;
      sgd.set_lr(scales ? 0.1 : 0.1 / t);
      sgd.step(scales ? 1.0 / t : 1);
    }
    optim::Sgd sgd;
    bool scales;
    int taken = 0, later;
  };
  const auto schedules = [](int later) -> MakeOptimizer {
    return [=](const std::vector<Tensor>& p, Which which) {
      return std::make_unique<Scheduled>(p, which == Which::second, which == Which::second ? later : 0);
    };
  };
  expected(Verdict::equivalent, paths_of<Layer>(schedules(0)));
  CHECK_THAT(expected(Verdict::different, paths_of<Layer>(schedules(1))).sentence(),
             Contains("at step 3 the loss and ") && Contains("look at the update"));
  expected(Verdict::equivalent, paths_of<Layer>(two(0.1)));
  CHECK_THAT(
      expected(Verdict::different, paths_of<Layer>(two(0.2))).sentence(),
      Contains(
          "cause: another weight decay: the second model takes off 0.001 of each weight per step, the first 0.002"));
}
