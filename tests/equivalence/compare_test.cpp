// Comparisons of a user's models: equal models must come out the same; forged, broken and incomparable models must be
// recognized, with place and cause.
#include "equivalence/compare/compare.h"

#include <limits>

#include "equivalence/compare/own_training.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "lab/probes/architecture.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/equivalence/small_net.h"

namespace {

constexpr CompareOptions kFew = {.points = 2, .steps = 4};

Comparison compared(nn::Module& a, nn::Module& b, const Objective& objective = cross_entropy_of,
                    const ParameterMap& map = {}, const CompareOptions& o = kFew) {
  return compare_gradients(a, b, map, objective, small_batch, o);
}
Comparison gradients(const Switches& a, const Switches& b, const ParameterMap& map = {}) {
  const auto first = small_net(a), second = small_net(b);
  return compared(*first, *second, cross_entropy_of, map);
}

const MakeOptimizer kAdamW = [](const std::vector<Tensor>& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2});
};
MakeOptimizer sgd(double lr) {
  return [=](const std::vector<Tensor>& p) { return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.lr = lr}); };
}

Comparison trajectories(const Switches& a, const Switches& b, const ParameterMap& map = {},
                        const MakeOptimizer& optimizer = kAdamW) {
  return compare_trajectories([&] { return small_net(a); }, [&] { return small_net(b, 4); }, map, cross_entropy_of,
                              optimizer, small_batch, kFew);
}

// SmallNet with one more parameter that only the objective reads.
struct WithExtra : SmallNet {
  explicit WithExtra(const Switches& s, DType dtype = DType::f64) : SmallNet(s) { to(dtype); }
  nn::Parameter& extra = add_parameter("extra", ones({6}));
};

// Adds an exactly known gradient that is far smaller than the others: scale * of_b in model `b`, scale * of_a in all
// other models.
Objective with_small_gradient(const nn::Module* b, double scale, const Tensor& of_a, const Tensor& of_b) {
  return [=](nn::Module& m, const Examples& batch) {
    const Tensor extra = dynamic_cast<WithExtra&>(m).extra, inputs = batch.inputs.to(extra.dtype());
    const Tensor small = sum(extra * ((&m == b ? of_b : of_a) * scale).to(extra.dtype()));
    return cross_entropy(m(inputs), batch.targets) + (small - detach(small));  // adds 0
  };
}

}  // namespace

TEST_CASE("compare: every form has Pre-LN's gradients and trajectory, and parameters keep their values") {
  for (const Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const auto a = small_net({}), b = small_net({.form = form}, 5);
    const std::vector<double> before = b->up1.weight.to_vector<double>();
    const Comparison c = expected(Verdict::equivalent, compared(*a, *b));
    CHECK(c.deviation > 0);
    CHECK(c.control > 0);
    CHECK(b->up1.weight.to_vector<double>() == before);
    expected(Verdict::equivalent, trajectories({}, {.form = form}));
  }
}

TEST_CASE("compare: mapped storage through a map: gradients agree, Adam's path does not, and the update is named") {
  const auto raw = small_net({});
  const streams::Stream stream(Form::crms_norm, 8, Stored::mapped);
  const ParameterMap map = ParameterMap::mapped_storage(*raw, stream);
  const Switches mapped = {.form = Form::crms_norm, .storage = Stored::mapped};
  expected(Verdict::equivalent, gradients({}, mapped, map));
  const Comparison t = expected(Verdict::different, trajectories({}, mapped, map));
  REQUIRE(t.first_difference);
  CHECK(t.first_difference->step == 1);
  CHECK_THAT(t.sentence(), Contains("at step 1 the loss and all 12 gradients agree, and 9 of 12 weights differ: ") &&
                               Contains("look at the update"));
}

TEST_CASE("compare: one weight moved by 1e-9 of its tensor's largest is reported at step 1, with the entry") {
  // SGD that changes entry 13 of the third parameter after every step, but only in the last model that is made, B.
  // Before it A is made with an exchanged batch, with its counterpart, alone, and for the controls.
  struct Forging : optim::Optimizer {
    Forging(const std::vector<Tensor>& p, bool forges)
        : Optimizer("forging", p.size()), sgd(p, {.lr = 1e-2}), forge(forges) {
      target = p[2];
    }
    void step(double scale) override {
      sgd.step(scale);
      if (forge) target.mutable_data<double>()[13] += 1e-9 * amax(abs(detach(target))).item();
    }
    optim::Sgd sgd;
    Tensor target;
    bool forge;
  };
  int made = 0;
  const MakeOptimizer last_forges = [&](const std::vector<Tensor>& p) {
    return std::make_unique<Forging>(p, ++made == 4 + 2 * kFew.controls);
  };
  const Comparison c =
      compare_trajectories([] { return small_net({}); }, [] { return small_net({.form = Form::rms_norm}); }, {},
                           cross_entropy_of, last_forges, small_batch, kFew);
  INFO(c.sentence());
  CHECK_FALSE(c.equivalent());
  REQUIRE(c.first_difference);
  CHECK(c.first_difference->step == 1);
  CHECK(c.first_difference->place.tensor == "up1.weight");
  CHECK(c.first_difference->place.index == Dims{1, 5});
  CHECK_THAT(c.sentence(), Contains("1 of 12 weights differs: look at the update") &&
                               Contains("weight of up1.weight: 1.0e-09, the bound is ") &&
                               Contains("up1.weight[1, 5] is "));
}

TEST_CASE("compare: NaN, nothing, and a model with itself are never the same") {
  const auto a = small_net({}), b = small_net({}, 8);
  CHECK_THAT(compared(*a, *a).sentence(), Contains("different: a model was compared with itself"));
  // Two models that run the same program: equal bits.
  const Comparison twin = compared(*a, *b);
  CHECK_THAT(twin.sentence(), Contains("undecided: equal to the last bit"));
  CHECK(compared(*a, *b, cross_entropy_of, {}, {.points = 1, .may_be_identical = true}).equivalent());
  CHECK_THAT(trajectories({}, {}).sentence(), Contains("undecided: equal to the last bit"));

  const Objective nan = [](nn::Module& m, const Examples& batch) {
    return cross_entropy_of(m, batch) * std::numeric_limits<double>::quiet_NaN();
  };
  const auto rms = small_net({.form = Form::rms_norm});
  CHECK_FALSE(compared(*a, *rms, nan).equivalent());
  const Objective constant = [](nn::Module& m, const Examples&) { return sum(m.parameters()[0]) * 0.0; };
  CHECK_FALSE(compared(*a, *rms, constant).equivalent());

  ParameterMap none;
  none.leave_out("**");
  CHECK_FALSE(compared(*a, *rms, cross_entropy_of, none).equivalent());
  CHECK_THROWS_WITH(compared(*a, *rms, cross_entropy_of, {}, {.points = 0}), Contains("expected at least 1"));
  CHECK_THROWS_WITH(compare_trajectories([] { return small_net({}); }, [] { return small_net({}); }, {},
                                         cross_entropy_of, kAdamW, small_batch, {.steps = 0}),
                    Contains("expected at least 1"));
}

TEST_CASE("compare: controls that move as far as a real difference are no measure") {
  // One ulp of a weight changes the phase of the sine by 1e-4.
  const Objective chaotic = [](nn::Module& m, const Examples& batch) {
    return cross_entropy_of(m, batch) + sum(sin(m.parameters()[0] * 1e12));
  };
  const auto a = small_net({}), b = small_net({.form = Form::rms_norm});
  CHECK_THAT(compared(*a, *b, chaotic).sentence(),
             Contains("undecided: the controls") && Contains("would hide a real difference"));
}

TEST_CASE("compare: a training whose controls run away is undecided, one with a single batch is not") {
  const MakeModel layer = [] { return small_net({.affine = true}); };
  const MakeModel rms = [] { return small_net({.form = Form::rms_norm, .affine = true}, 4); };
  const auto trained = [&](double lr, const Batches& batches) {
    return compare_trajectories(layer, rms, {}, cross_entropy_of, sgd(lr), batches, {.steps = 30, .controls = 2});
  };
  const Comparison calm = expected(Verdict::equivalent, trained(0.05, [](int64_t) { return small_batch(3); }));
  CHECK(calm.horizon.steps == 30);
  CHECK(calm.horizon.limit.loss > 0);
  CHECK_THAT(calm.sentence(), Contains(detectable_text(calm.horizon)));
  const Comparison still = trained(1e-14, small_batch);  // no training, so no wrong one, except for the batch
  INFO(still.sentence());
  CHECK(still.verdict == Verdict::undecided);
  CHECK_THAT(still.sentence(), Contains("undecided: ") && Contains("a verdict needs 20 steps"));
  const Objective chaotic = [](nn::Module& m, const Examples& batch) {
    return cross_entropy_of(m, batch) + sum(sin(m.parameters()[0] * 1e6)) * 1e-6;
  };
  const Comparison wild = compare_trajectories(layer, rms, {}, chaotic, sgd(0.1), small_batch, {.steps = 30});
  INFO(wild.sentence());
  CHECK_FALSE(wild.equivalent());
}

TEST_CASE("compare: models that agree only at their weights, or only in the loss, are different") {
  const auto a = small_net({}), b = small_net({.form = Form::rms_norm});
  fill(detach(a->head.bias), 1);
  const auto with_extra = [&](const std::function<Tensor(const Tensor& bias)>& extra) -> Objective {
    return [&, extra](nn::Module& m, const Examples& batch) {
      const Tensor loss = cross_entropy_of(m, batch);
      return &m == b.get() ? loss + extra(b->head.bias) : loss;
    };
  };
  const Objective elsewhere = with_extra([](const Tensor& bias) { return sum(relu(-bias)); });  // 0 if the bias is 1
  CHECK_FALSE(compared(*a, *b, elsewhere, {}, {.points = 4}).equivalent());
  const Objective no_value = with_extra([](const Tensor& bias) { return sum(bias) - sum(detach(bias)); });
  const Comparison c = compared(*a, *b, no_value);
  CHECK_FALSE(c.equivalent());
  REQUIRE(c.first_difference);
  CHECK(c.first_difference->quantity == std::string("gradient"));
  CHECK(c.first_difference->place.tensor == "head.bias");
}

TEST_CASE("compare: a small gradient that the controls do not move is compared by its own size") {
  const Tensor c = from_vector<double>({1, -2, 3, 0.5, 4, -1.5}, {6});
  const std::pair<const char*, Tensor> forgeries[] = {
      {"zeros", c * 0.0},
      {"sign", -c},
      {"twice", c * 2.0},
      {"one entry", from_vector<double>({1, -2, 3, 0.5, 3.5, -1.5}, {6})},
  };
  for (const DType dtype : {DType::f64, DType::f32})
    for (const double share : {1.0, 100.0, 900.0}) {  // in eps; the other gradients are between 0.1 and 1
      const double scale = share * epsilon(dtype) / 40;
      WithExtra a({}, dtype), b({.form = Form::rms_norm}, dtype);
      INFO(name_of(dtype) << ", " << share << " eps");
      expected(Verdict::equivalent, compared(a, b, with_small_gradient(&b, scale, c, c)));
      for (const auto& [name, forged] : forgeries) {
        INFO(name);
        const Comparison seen = expected(Verdict::different, compared(a, b, with_small_gradient(&b, scale, c, forged)));
        REQUIRE(seen.first_difference);
        CHECK(seen.first_difference->place.tensor == "extra");
      }
    }
}

TEST_CASE("compare: a gradient that is zero in exact arithmetic is noise, in points and along a path") {
  // Shifts all logits equally, which cross entropy ignores. The two models divide by different numbers first, so the
  // remaining rounding errors are unrelated.
  const Objective shifted = [](nn::Module& m, const Examples& batch) {
    WithExtra& net = dynamic_cast<WithExtra&>(m);
    const Tensor inputs = batch.inputs.to(net.extra.dtype());
    const double size = net.on.form == Form::layer_norm ? 3 : 5;
    return cross_entropy(m(inputs) + sum(net.extra) / size, batch.targets);
  };
  for (const DType dtype : {DType::f64, DType::f32}) {
    WithExtra a({}, dtype), b({.form = Form::rms_norm}, dtype);
    const Comparison c = compared(a, b, shifted);
    INFO(name_of(dtype) << ": " << c.sentence());
    CHECK(c.equivalent());
    const Comparison t = expected(
        Verdict::equivalent,
        compare_trajectories(
            [&] { return std::make_unique<WithExtra>(Switches{.affine = true}, dtype); },
            [&] { return std::make_unique<WithExtra>(Switches{.form = Form::rms_norm, .affine = true}, dtype); }, {},
            shifted, sgd(1e-2), small_batch, kFew));
    CHECK(t.horizon.limit.gradient < 0.3);  // a negative control gets no credit for moving noise
  }
}

TEST_CASE("compare: names the entry with the largest difference, by its index in the whole tensor") {
  const auto square = [](std::vector<double> v) { return from_vector(v, {2, 2}); };
  const Tensor zero = zeros({2, 2}, {DType::f64});
  const Pair tiny = {"tiny", square({1e-9, 0, 0, 0}), zero, 1}, large = {"large", square({0.1, 0, -0.5, 0.2}), zero, 1},
             coarse = {"coarse", square({0, 0, 7, 0}), zero, 100},  // 0.07 of its scale
      nan = {"nan", square({9, std::nan(""), 99, 0}), zero, 1}, last = {"last", nan.value, zero, 1};
  const auto place = furthest_off({tiny, large, coarse});
  REQUIRE(place);
  CHECK(place->tensor == "large");
  CHECK(place->index == Dims{1, 0});
  CHECK(place->deviation == 0.5);
  const auto broken = furthest_off({large, nan, last});
  REQUIRE(broken);
  CHECK(broken->tensor == "nan");
  CHECK(broken->index == Dims{0, 1});
  CHECK_FALSE(furthest_off({}));
  CHECK_FALSE(furthest_off({{"empty", zeros({0}), zeros({0}), 1}}));
  const auto row = furthest_off({{"qkv.bias", square({1, 2, 3, 4}), square({1, 2, 3, 5}), 5, 7}});  // begins at row 7
  REQUIRE(row);
  CHECK(row->index == Dims{8, 1});
}

TEST_CASE("compare: every quantity is held to the bound of its own controls") {
  // Gradients and weights that are off by given amounts, relative to 1; the loss is always 1.
  struct Forged : Training {
    struct OneWeight : nn::Module {
      OneWeight() { add_parameter("w", ones({1}, {DType::f64})); }
    };
    Forged(double gradient, double weight) : off{gradient, weight} { parameters_ = streams::named_parameters(module); }
    void differentiate(const Examples&) override { loss_ = 1, gradients_ = {tensor({1 + off[0]})}; }
    void update(double) override { weights_ = {tensor({1 + off[1]})}; }
    nn::Module& model() override { return module; }
    OneWeight module;
    double off[2];
  };
  RunResult reference, control, run;
  Lockstep all;
  all.add(std::make_unique<Forged>(0, 0), reference);
  all.add(std::make_unique<Forged>(1e-10, 1e-12), control, true);
  all.add(std::make_unique<Forged>(1e-9, 1e-9), run);
  all.step({}, 0);
  REQUIRE(run.first_difference);  // 30 times 1e-10 explains the gradient, but 30 times 1e-12 not the weight
  CHECK(run.first_difference->quantity == std::string("weights"));
}

TEST_CASE("compare: a partner that is missing, extra or of another shape is named") {
  const auto a = small_net({}), scaled = small_net({.form = Form::rms_norm, .scale = true});
  const auto said = [&](const ParameterMap& map) { return compared(*a, *scaled, cross_entropy_of, map).sentence(); };
  CHECK_THAT(said({}), Contains("no parameter of the first model becomes scale"));
  CHECK_THAT(said(ParameterMap().add("head.bias", "tail.bias")), Contains("no parameter tail.bias"));
  CHECK_THAT(said(ParameterMap().add("up1.weight", "up1.weight", {{"transpose", 0}})),
             Contains("up1.weight becomes [8, 10]"));
}

TEST_CASE("compare: a likely cause is named if there is evidence for it") {
  const Switches rms = {.form = Form::rms_norm};
  const auto with = [](Switches s, auto change) {
    change(s);
    return s;
  };
  const auto both = [&](auto change) { return gradients(with({}, change), with(rms, change)).sentence(); };
  CHECK_THAT(gradients({}, with(rms, [](Switches& s) { s.eps = 1e-6; })).sentence(),
             Contains("cause: different eps: norm1 has 1e-05, norm1 of the second model 1e-06"));
  CHECK_THAT(gradients({}, with(rms, [](Switches& s) { s.declared = false; })).sentence(),
             Contains("cause: a role declared differently: down1.weight is a writer"));
  CHECK_THAT(both([](Switches& s) { s.final_norm = false; }),
             Contains("cause: a first model that sees the mean of its stream, as one without a final norm"));
  CHECK_THAT(both([](Switches& s) { s.dropout = 0.3; }),
             Contains("cause: a part that acts in training only, such as dropout"));
  CHECK_THAT(both([](Switches& s) { s.scale = true; }),
             Contains("cause: a vector that scales the output of a writer: if all entries of scale are equal"));
  CHECK_THAT(gradients({}, with(rms, [](Switches& s) { s.storage = Stored::mapped; })).sentence(),
             Contains("cause: a map that is missing") && Contains("entry.weight"));
}

TEST_CASE("redrawing parameters keeps their size, however often, and gives them a mean") {
  nn::Linear layer(64, 64);
  Generator generator{1, 0};
  const Tensor w = layer.parameters()[0];
  const auto size = [&] { return norm(detach(w)).item() / 64; };  // root mean square of 64 x 64 entries
  const double before = size();
  for (int i = 0; i < 10; ++i) draw_parameters(layer.parameters(), generator);
  // With n = 4096 draws the size varies by 1/sqrt(2n) = 1.1 %, after ten repetitions by 3.5 %.
  CHECK(std::abs(size() / before - 1) < 0.15);
  CHECK(std::abs(mean(detach(w)).item() / size() - 0.5 / std::sqrt(1.25)) < 0.07);
}
