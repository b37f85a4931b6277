// Tests of gradcheck() itself: it accepts right gradients, also in rows far from 0, names the wrong entry, and is not
// ok if it has measured nothing.
#include "autograd/gradcheck.h"

#include "tests/autograd/room.h"

using List = std::vector<Tensor>;

namespace {

// x^2 whose rule multiplies the gradient of one element by 1 + fault.
Tensor faulty_square(const Tensor& x, double fault) {
  Tensor y = square(detach(x));
  if (auto* n = track("faulty_square", {&y}, {&x}))
    n->backward = [x = save(x), fault](Flow& g) {
      Tensor dx = mul(mul(g.out(), x), 2.0);
      dx.mutable_data<double>()[4] *= 1 + fault;
      g.give(0, dx);
    };
  return y;
}

// size x, whose rule gives `factor` times the right gradient, plus `more`.
TensorFunction scaled(double size, double factor, double more = 0) {
  return [=](const List& x) {
    Tensor y = detach(x[0]) * size;
    if (auto* n = track("scaled", {&y}, {&x[0]}))
      n->backward = [=](Flow& g) { g.give(0, g.out() * (size * factor + more)); };
    return y;
  };
}

Tensor values() { return from_vector<double>({0.5, -1, 2, 0.25, 3, -0.75}, {2, 3}); }

}  // namespace

TEST_CASE("gradcheck accepts right gradients of several inputs and outputs") {
  const Tensor w = from_vector<double>({1, 0.5, -1, 2, 0.1, 0.7}, {3, 2});
  const auto f = [](const List& x) { return List{tanh(matmul(x[0], x[1])), sum(exp(x[0])), argmax(x[1])}; };
  const GradcheckResult r = gradcheck(f, {values(), w});
  INFO(r.message());
  CHECK(r.ok);
  CHECK(r.entries == 12);
  CHECK(r.error < 1e-10);
}

TEST_CASE("gradcheck finds an error of a millionth and its entry") {
  const auto f = [](double fault) { return [=](const List& x) { return faulty_square(x[0], fault); }; };
  CHECK(gradcheck(f(0), {values()}).ok);
  const GradcheckResult r = gradcheck(f(1e-6), {values()});
  CHECK_FALSE(r.ok);
  CHECK(r.input == 0);
  CHECK(r.index == Dims{1, 1});
  CHECK(r.error == Approx(1e-6).epsilon(0.01));
  CHECK(r.analytic / r.numeric - 1 == Approx(1e-6).epsilon(0.01));
  CHECK_THAT(r.message(), Contains("input 0 at [1, 1]"));
}

TEST_CASE("gradcheck takes its step from the spread of a row") {
  const auto f = [](const List& x) {
    const Tensor centred = x[0] - mean(x[0], {-1}, true);
    return centred * rsqrt(mean(square(centred), {-1}, true));
  };
  const Tensor far = from_vector<double>({1e4, 1e4 + 1, 1e4 - 0.5, 3e-3, 1e-3, -2e-3}, {2, 3});
  const GradcheckResult r = gradcheck(f, {far});
  INFO(r.message());
  CHECK(r.ok);
}

TEST_CASE("gradcheck sees a missing gradient, a gradient of zero and a NaN") {
  CHECK_FALSE(gradcheck([](const List& x) { return detach(x[0]) * x[0]; }, {values()}).ok);
  CHECK_FALSE(gradcheck([](const List& x) { return detach(x[0]); }, {values()}).ok);
  CHECK_FALSE(gradcheck([](const List& x) { return faulty_square(x[0], NAN); }, {values()}).ok);
}

TEST_CASE("gradcheck measures small gradients by their own size") {
  for (const double size : {1e-10, 1e-100, 1e100}) {
    CHECK(gradcheck(scaled(size, 1), {values()}).status == GradcheckStatus::right);
    const GradcheckResult r = gradcheck(scaled(size, 2), {values()});
    CHECK(r.status == GradcheckStatus::wrong);
    CHECK_FALSE(r.ok);
    CHECK(r.error == Approx(0.5));
    CHECK_THAT(r.message(), Contains("output 0, input 0 at") && Contains("relative error 0.5"));
  }
  // 4 eps |f| / h of six values of 1e6, h at least 2^-12 and c below 1.5, is below 4 2^-52 9e6 2^12 = 4e-5.
  const auto far = [](double more) {
    return gradcheck([=](const List& x) { return scaled(0, 0, more)({x[0]}) + 1e6; }, {values()}).status;
  };
  CHECK(far(1e-4) == GradcheckStatus::wrong);
  CHECK(far(1e-9) == GradcheckStatus::nothing);
  CHECK(gradcheck(scaled(1e-10, 2), {values()}, {.absolute = 1e-9}).status == GradcheckStatus::nothing);
}

TEST_CASE("gradcheck is not ok if nothing was measured") {
  const auto complaint = [](const TensorFunction& f, const Tensor& x, bool zero = false) {
    const GradcheckResult r = gradcheck(f, {x}, {.zero = zero});
    CHECK(r.status == GradcheckStatus::nothing);
    CHECK(r.ok == zero);
    CHECK(r.input == -1);
    return r.message();
  };
  const TensorFunction twice = [](const List&x) { return x[0] * 2.0; },
                       which = [](const List&x) { return argmax(x[0]); },
                       sign_of = [](const List&x) { return sign(x[0]); },
                       constant = [](const List&) { return values(); };
  CHECK(complaint(which, values()) == "gradcheck: nothing was measured: no output of f64 has an entry");
  CHECK(complaint(twice, zeros({0, 3}, {DType::f64})) ==
        "gradcheck: nothing was measured: no input of f64 has an entry");
  CHECK(complaint(twice, tensor({1, 2})) == "gradcheck: nothing was measured: no input of f64 has an entry");
  const std::string zeros = "all 6 entries of the gradients are zero (at most 0)";
  for (const TensorFunction& f : {sign_of, constant}) {
    CHECK(complaint(f, values()) ==
          "gradcheck: nothing was measured: " + zeros + "; if that is right, say {.zero = true}");
    CHECK(complaint(f, values(), true) == "gradcheck: " + zeros);
  }
  const GradcheckResult r = gradcheck(twice, {values()}, {.zero = true});
  CHECK(r.status == GradcheckStatus::wrong);
  CHECK_FALSE(r.ok);
  CHECK_THAT(r.message(), Contains("expected zeros"));
}

TEST_CASE("gradcheck refuses a step and tolerances that measure nothing, and says if values are too large for it") {
  const auto with = [](GradcheckOptions o) {
    return gradcheck([](const List& x) { return exp(x[0]); }, {values()}, o);
  };
  for (const double step : {0.0, -1e-3, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH(with({.step = step, .zero = true}), Contains("expected a finite number above 0"));
  CHECK_THROWS_WITH(with({.tolerance = -1}), Contains("expected numbers from 0"));
  CHECK_THROWS_WITH(with({.tolerance = NAN}), Contains("expected numbers from 0"));
  CHECK_THROWS_WITH(with({.absolute = NAN}), Contains("expected numbers from 0"));
  const GradcheckResult r = gradcheck([](const List& x) { return x[0] * 2.0 + 1e14; }, {values()});
  CHECK_FALSE(r.ok);
  CHECK_THAT(r.message(), Contains("the function's values are large") && !Contains("say {.zero"));
}

TEST_CASE("gradcheck says which input of several has a zero gradient") {
  const GradcheckResult r = gradcheck([](const List& x) { return x[0] * sign(x[1]); }, {values(), values()});
  CHECK(r.ok);
  CHECK(r.entries == 12);
  CHECK_THAT(r.message(), Contains("zero is the gradient of input 1"));
}

TEST_CASE("gradcheck names the output that is wrong") {
  const auto f = [](const List& x) { return List{argmax(x[0]), tanh(x[0]), faulty_square(x[0], 1e-3), exp(x[0])}; };
  const GradcheckResult r = gradcheck(f, {values()});
  CHECK(r.status == GradcheckStatus::wrong);
  CHECK(r.output == 2);
  CHECK_THAT(r.message(), Contains("output 2, input 0 at [1, 1]"));
}

TEST_CASE("gradcheck says that a point may be a kink, that a step left the domain, that values are large") {
  const auto note = [](const TensorFunction& f, const Tensor& x) {
    const GradcheckResult r = gradcheck(f, {x});
    CHECK(r.status == GradcheckStatus::wrong);
    CHECK_THAT(r.message(), Contains(r.note));
    return r.note;
  };
  const TensorFunction rectified = [](const List& x) { return relu(x[0]); };
  // The slope of c relu: 0 to the left, c to the right.
  CHECK_THAT(note(rectified, tensor({0.0, 1.0, -2.0})),
             Contains("the slope is 0 to the left") && Contains("the point may be a kink"));
  CHECK_THAT(note(rectified, tensor({1e-5, 1.0, -2.0})), Contains("a kink or a tie may lie within the step"));
  CHECK_THAT(note([](const List& x) { return log(x[0]); }, tensor({1e-4, 1.0, 2.0})),
             Contains("from 0.0001 leaves the domain of the function"));
  CHECK_THAT(note([](const List& x) { return tanh(x[0]) + 1e9; }, tensor({0.1, 1.0, 2.0})),
             Contains("rounding of the function alone may be worth"));
  CHECK(note([](const List& x) { return faulty_square(x[0], 0.1); }, values()).empty());  // the rule is wrong
}

TEST_CASE("gradcheck differentiates even if its caller turned gradients off") {
  const NoGrad no_grad;
  CHECK(gradcheck([](const List& x) { return tanh(x[0]); }, {values()}).ok);
}

TEST_CASE("gradgradcheck finds a second derivative that lacks a share") {
  const auto cube = [](bool constant) {
    return [=](const List& x) {
      Tensor y = detach(x[0]) * detach(x[0]) * detach(x[0]);
      if (auto* n = track("cube", {&y}, {&x[0]}))
        n->backward = differentiable([x = save(x[0]), constant](Flow& g) {
          g.give(0, g.out() * (3.0 * Tensor(x) * (constant ? x.data() : Tensor(x))));
        });
      return y;
    };
  };
  const GradcheckResult right = gradgradcheck(cube(false), {values()});
  CHECK(right.status == GradcheckStatus::right);
  CHECK(right.entries == 12);  // x and the cotangent
  CHECK(gradcheck(cube(true), {values()}).ok);
  const GradcheckResult wrong = gradgradcheck(cube(true), {values()});
  CHECK(wrong.status == GradcheckStatus::wrong);
  CHECK(wrong.error == Approx(0.5));  // 3 x for 6 x
  CHECK(wrong.output == 0);
  CHECK(wrong.input == 0);
  CHECK(gradgradcheck([](const List& x) { return sign(x[0]); }, {values()}).status == GradcheckStatus::nothing);
  CHECK(gradgradcheck([](const List& x) { return x[0] * 2.0; }, {values()}).ok);  // linear in the cotangent
}

TEST_CASE("gradcheck refuses functions that it cannot check") {
  const auto same = [](const List& x) { return x[0] * 1.0; };
  CHECK_THROWS_WITH(gradcheck(same, {tensor({1.f})}), Contains("f32") && Contains("[1]"));
  CHECK_THROWS_WITH(gradcheck([](const auto& x) { return x[0].to(DType::f32); }, {values()}), Contains("output"));
  int calls = 0;
  CHECK_THROWS_WITH(gradcheck([&](const List& x) { return x[0] + double(++calls); }, {values()}), Contains("random"));
  const auto overwrites = [](const List& x) {
    const Tensor y = x[0] * 2.0;
    fill(x[0], 3);
    return y;
  };
  CHECK_THROWS_WITH(gradcheck(overwrites, {values()}), Contains("gradcheck: the function writes to input 0"));
  const auto changes_ids = [](const List& x) {
    fill(x[1], 0);
    return x[0] * 2.0;
  };
  CHECK_THROWS_WITH(gradcheck(changes_ids, {values(), tensor({3})}), Contains("writes to input 1"));
  CHECK_THROWS_WITH(gradcheck(
                        [](const List& x) {
                          const Tensor y = detach(x[0]) * 2.0;
                          track("own", {&y}, {&x[0]});
                          return y;
                        },
                        {values()}),
                    Contains("own: it has no rule"));
}
