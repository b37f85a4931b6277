// compare_gradients judges each tensor independently of the others, reports the smallest detectable factor, and
// restores the models.
#include "equivalence/judge/pairs.h"

#include "equivalence/compare/compare.h"
#include "equivalence/compare/shift_blind.h"
#include "nn/group_norm.h"
#include "tests/equivalence/small_net.h"

namespace {

// SmallNet and a gate that only the objective reads.
struct WithGate : SmallNet {
  WithGate(const Switches& s, DType dtype) : SmallNet(s) { to(dtype); }
  nn::Parameter& gate = add_parameter("gate", ones({1}));
};

// The gate's gradient depends on the phase of the weights times `steep`: one ulp of them changes it by about steep eps.
// In `b` the gradients of the parameters [first, last) are multiplied by 1 + x.
Objective with_gate(const WithGate* b, double steep, size_t first = 0, size_t last = 0, double x = 0) {
  return [=](nn::Module& m, const Examples& batch) {
    WithGate& net = dynamic_cast<WithGate&>(m);
    const auto whole = [&] {
      const Tensor phase = sum(detach(net.up1.weight).to(DType::f64)) * steep;
      const Tensor slope = (2 + sin(phase)).to(net.gate.dtype());
      const Tensor of_gate = sum(net.gate * slope);
      const Tensor inputs = batch.inputs.to(net.gate.dtype());
      return cross_entropy(net(inputs), batch.targets) + (of_gate - detach(of_gate));
    };
    Tensor loss = whole();
    if (&m != b || x == 0) return loss;
    const std::vector<Tensor> p = m.parameters(), g = grad(std::span(&loss, 1), p);
    loss = whole();
    for (size_t i = first; i < last; ++i) {
      const Tensor more = sum(p[i] * (g[i] * x));
      loss = loss + (more - detach(more));
    }
    return loss;
  };
}

struct Normed : nn::Module {
  nn::Linear& entry = add("entry", nn::Linear(5, 6));
  nn::BatchNorm& norm = add("norm", nn::BatchNorm(6));
  nn::Linear& head = add("head", nn::Linear(6, 3));
  int calls = 0, throws_at = 0;
  Normed() {
    to(DType::f64);
    fill(norm.running_mean, 0.25);
    set_grad(head.weight, ones({3, 6}, {DType::f64}));
  }
  Tensor forward(const Tensor& x) override {
    check(++calls != throws_at, "enough");
    return head(norm(entry(x)));
  }
};

}  // namespace

TEST_CASE("detectable: a tensor that cancels does not hide others, and a detectable deviation is detected") {
  for (const auto& [dtype, steep, small] : {std::tuple(DType::f64, 1e7, 1e-11), {DType::f32, 2000., 1e-4}})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      manual_seed(seed);
      WithGate a({}, dtype), b({.form = Form::rms_norm}, dtype);
      const size_t count = a.parameters().size();
      // grad() inside the loss refuses inputs that need gradients. Without them the controls are the same with and
      // without x.
      const CompareOptions options{.seed = seed, .inputs = false};
      const auto compared = [&, steep = steep](size_t first, size_t last, double x) {
        return compare_gradients(a, b, {}, with_gate(&b, steep, first, last, x), small_batch, options);
      };
      const Comparison honest = compared(0, 0, 0);
      INFO(name_of(dtype) << ", seed " << seed << ": " << honest.sentence());
      CHECK(honest.equivalent());
      CHECK(30 * honest.control > 10 * small);  // gate; as a common bound it would hide the factor
      CHECK_THAT(honest.sentence(), Contains(detectable_text(honest.detectable)));
      expected(Verdict::different, compared(0, count, small));
      for (size_t i = 0; i < count; ++i) {
        INFO(streams::named_parameters(a)[i].name);
        const Comparison one = expected(Verdict::different, compared(i, i + 1, 1.05 * honest.detectable));
        REQUIRE(one.first_difference);
        CHECK(one.first_difference->place.tensor == streams::named_parameters(a)[i].name);
      }
    }
}

TEST_CASE("detectable: if a factor of a tensor is not detectable, the comparison is undecided") {
  WithGate a({}, DType::f32), b({.form = Form::rms_norm}, DType::f32);
  const Comparison c = expected(Verdict::undecided, compare_gradients(a, b, {}, with_gate(&b, 1e6), small_batch));
  CHECK_THAT(c.sentence(), Contains(" of gate; a verdict needs 1 + 1.0e-02)"));
  CHECK(c.detectable > 1e-2);
}

TEST_CASE("detectable: the number is rounded up") {
  CHECK(detectable_text(2.11e-5) == "detectable: a factor of 1 + 2.2e-05 of any tensor");
  CHECK(detectable_text(3e-2, "gate") == "detectable: a factor of 1 + 3.0e-02 of gate");
  CHECK(detectable_text(9.91e-12) == "detectable: a factor of 1 + 1.0e-11 of any tensor");
}

TEST_CASE("detectable: the offset of a whole tensor is fitted by least squares") {
  // <d, r> / <r, r> with r = (1, 2, -2), d = (0.1, 0, 0.2): (0.1 - 0.4) / 9.
  const Tensor r = tensor<double>({1, 2, -2}), x = tensor<double>({1.1, 2, -1.8});
  const Offset o = offset({"w", x, r, 2});
  CHECK(std::abs(o.entry - 0.1) < 1e-15);
  CHECK(std::abs(o.factor - 0.3 / 9) < 1e-15);
  CHECK(offset({"noise", x, r, 50}).factor == 0);
  for (const double size : {1e-300, 1e300})
    CHECK(std::abs(offset({"w", x * size, r * size, 2 * size}).factor - 0.3 / 9) < 1e-14);
  CHECK(std::isnan(offset({"nan", r * NAN, r, 2}).factor));
}

TEST_CASE("compare and shift: parameters, buffers and gradients are restored even if the loss throws") {
  manual_seed(3);
  Normed a, b;
  const auto of = [](const Normed& m) {
    std::vector<std::vector<double>> all = {m.head.weight.grad().to_vector<double>()};
    for (const auto& [name, tensor] : m.state_dict()) all.push_back(tensor.to_vector<double>());
    return all;
  };
  const auto first = of(a), second = of(b);
  std::vector<streams::NamedParameter> writer(1);
  writer[0].name = "entry.weight", writer[0].role = streams::Role::writer;
  const CompareOptions two = {.points = 2, .may_be_identical = true};
  CHECK(compare_gradients(a, b, {}, cross_entropy_of, small_batch, two).equivalent());
  CHECK((of(a) == first && of(b) == second));
  check_shift_blind(a, cross_entropy_of, small_batch, two, writer);
  CHECK(of(a) == first);
  for (Normed* throws : {&a, &b}) {
    throws->throws_at = throws->calls + 2;  // in the first point, or in the second one
    CHECK_THROWS_WITH(compare_gradients(a, b, {}, cross_entropy_of, small_batch, two), Contains("enough"));
    CHECK((of(a) == first && of(b) == second));
  }
  a.throws_at = a.calls + 2;
  CHECK_THROWS_WITH(check_shift_blind(a, cross_entropy_of, small_batch, two, writer), Contains("enough"));
  CHECK(of(a) == first);
}
