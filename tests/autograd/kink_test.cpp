// Gradients at points where a function is not smooth: ties, kinks and the zero vector. Finite differences say nothing
// there.
#include "tests/autograd/room.h"

namespace {

using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

// Equal values, with NaN in the same places.
bool same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// Gradient of the sum of f(x).
template <class F> Values slope(F f, const Values& x) {
  const Tensor t = require_grad(from_vector(x, {static_cast<int64_t>(x.size())}));
  backward(sum(f(t)));
  return t.grad().to_vector<double>();
}

}  // namespace

TEST_CASE("ties share the gradient equally") {
  const Tensor other = tensor({2.0, 2.0, 2.0});
  CHECK(slope([&](const Tensor& x) { return maximum(x, other); }, {1, 2, 3}) == Values{0, 0.5, 1});
  CHECK(slope([&](const Tensor& x) { return minimum(other, x); }, {1, 2, 3}) == Values{1, 0.5, 0});
  CHECK(slope([](const Tensor& x) { return maximum(x, 2.0); }, {1, 2, 3}) == Values{0, 0.5, 1});
  CHECK(slope([](const Tensor& x) { return minimum(2.0, x); }, {1, 2, 3}) == Values{1, 0.5, 0});
  CHECK(slope([](const Tensor& x) { return amax(x); }, {4, 1, 4, 4, 4}) == Values{0.25, 0, 0.25, 0.25, 0.25});
  CHECK(slope([](const Tensor& x) { return amin(x); }, {1, 5, 1}) == Values{0.5, 0, 0.5});
}

TEST_CASE("at a kink the derivative is the documented one") {
  CHECK(slope([](const Tensor& x) { return abs(x); }, {-1, 0, 1}) == Values{-1, 0, 1});
  CHECK(slope([](const Tensor& x) { return relu(x); }, {-1, 0, 1}) == Values{0, 0, 1});
  CHECK(slope(
            [](const Tensor& x) {
              return l1_loss(x, tensor({0.0, 0.0, 0.0}), Reduction::sum);
            },
            {-1, 0, 1}) == Values{-1, 0, 1});
  CHECK(slope([](const Tensor& x) { return norm(x); }, {0, 0}) == Values{0, 0});
  CHECK(slope([](const Tensor& x) { return pow(x, 0.0); }, {0, 2}) == Values{0, 0});
  CHECK(slope([](const Tensor& x) { return pow(x, 2.0); }, {0, 2}) == Values{0, 4});
  CHECK(slope([](const Tensor& x) { return pow(0.0, x); }, {1, 2}) == Values{0, 0});
}

TEST_CASE("a closed gate passes no gradient, an infinite one neither") {
  const auto steep = [](auto gate, const Values& x) {
    return slope([&](const Tensor& t) { return gate(t) * tensor({kInf, kInf, -kInf}); }, x);
  };
  CHECK(same(steep([](const Tensor& x) { return relu(x); }, {-1, 0, -3}), {0, 0, 0}));
  CHECK(same(steep([](const Tensor& x) { return relu(x); }, {1, kNan, 3}), {kInf, kInf, -kInf}));
  CHECK(same(steep([](const Tensor& x) { return clamp(x, -1, 1); }, {-1, 2, 0}), {0, 0, -kInf}));
  using Flat = Tensor (*)(const Tensor&);
  for (const Flat flat :
       {Flat(sign), Flat(floor), Flat(ceil), Flat(round), Flat([](const Tensor& x) { return pow(x, 0.0); }),
        Flat([](const Tensor& x) { return pow(x, zeros_like(x)); })})
    CHECK(same(steep(flat, {-1.5, 0, 2}), {0, 0, 0}));
  CHECK(same(steep([](const Tensor& x) { return abs(x); }, {0, 2, 3}), {0, kInf, -kInf}));
  CHECK(same(steep([](const Tensor& x) { return leaky_relu(x, 0); }, {0, 2, -3}), {0, kInf, 0}));
  CHECK(
      same(steep([](const Tensor& x) { return remainder(full({}, 5, x.options()), x); }, {6, 2, 3}), {0, -kInf, kInf}));
  CHECK(same(slope([](const Tensor& x) { return mul(amax(x), kInf); }, {1, 3, 3}), {0, kInf, kInf}));
  // d/dx x^s at s = sign(x) is s x^(s-1), although ln(x), the gradient that sign() gets, is NaN.
  CHECK(same(slope([](const Tensor& x) { return pow(x, sign(x)); }, {-2, 3}), {-0.25, 1}));
}

TEST_CASE("a target without probability takes no gradient from kl_div and gives none, whatever x is there") {
  const Values x = {-kInf, kInf, kNan, std::log(0.5)}, zero = {0, 0, 0, 0.25},
               logs = {-kInf, -kInf, -kInf, std::log(0.25)};
  for (const bool log_target : {false, true}) {
    const Tensor tx = require_grad(from_vector(x, {4})), t = require_grad(from_vector(log_target ? logs : zero, {4}));
    const Tensor loss = kl_div(tx, t, Reduction::sum, log_target);
    CHECK(loss.item() == Approx(0.25 * std::log(0.5)).epsilon(1e-15));
    backward(mul(loss, 2.0));
    const Values dx = tx.grad().to_vector<double>(), dt = t.grad().to_vector<double>();
    CHECK(Values(dx.begin(), dx.begin() + 3) == Values{0, 0, 0});
    CHECK(Values(dt.begin(), dt.begin() + 3) == Values{0, 0, 0});
    CHECK(dx[3] == Approx(-0.5).epsilon(1e-15));
    CHECK(dt[3] == Approx(2 * (std::log(0.5) + 1) * (log_target ? 0.25 : 1)).epsilon(1e-14));
  }
}

// Values and slopes of PyTorch 2.15, except sign(NaN), which is 0 there.
TEST_CASE("at a bound clamp takes no gradient") {
  const Values x = {-2, -1, 0, 2, 3, kNan};
  const auto cut = [](const Tensor& t) { return clamp(t, -1, 2); };
  CHECK(same(cut(from_vector(x, {6})).to_vector<double>(), {-1, -1, 0, 2, 2, kNan}));
  CHECK(slope(cut, x) == Values{0, 0, 1, 0, 0, 0});
}

TEST_CASE("NaN takes the gradient that the documentation says") {
  CHECK(slope([](const Tensor& x) { return relu(x); }, {kNan, -0.0}) == Values{1, 0});
  CHECK(slope([](const Tensor& x) { return leaky_relu(x, 0.25); }, {kNan, 0}) == Values{0.25, 0.25});
  CHECK(slope([](const Tensor& x) { return abs(x); }, {kNan}) == Values{0});
  CHECK(same(slope([](const Tensor& x) { return amax(x); }, {1, kNan}), {kNan, kNan}));
  const Tensor other = tensor({kNan, 1.0, kNan});
  using Choose = Tensor (*)(const Tensor&, const Tensor&);
  for (Choose choose : {Choose(maximum), Choose(minimum)}) {
    CHECK(slope([&](const Tensor& x) { return choose(x, other); }, {1, kNan, kNan}) == Values{1, 1, 1});
    CHECK(slope([&](const Tensor& x) { return choose(other, x); }, {1, kNan, kNan}) == Values{1, 1, 1});
  }
}

TEST_CASE("signs of zero and NaN") {
  for (const DType d : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor x = empty({67}, {d});  // whole registers and a rest
    fill(x, -0.0);
    for (const double v : abs(x).to_vector<double>()) CHECK(!std::signbit(v));
    for (const double v : sign(x).to_vector<double>()) CHECK((v == 0 && !std::signbit(v)));
    fill(x, kNan);
    for (const double v : sign(x).to_vector<double>()) CHECK(std::isnan(v));
  }
}

TEST_CASE("powers of zero") {
  const Values b = {-1, 0, 0.5, 2, kNan}, values = {kInf, 1, 0, 0, kNan}, slopes = {-kInf, 0, 0, 0, kNan};
  CHECK(same(pow(0.0, from_vector(b, {5})).to_vector<double>(), values));
  CHECK(same(slope([](const Tensor& t) { return pow(0.0, t); }, b), slopes));
  CHECK(same(slope([](const Tensor& t) { return pow(sub(t, t), t); }, {-1}), {kNan}));
  const Tensor exponents = tensor({0.0, 0.5, 1.0, 2.0, -1.0, 0.0});
  CHECK(same(slope([&](const Tensor& a) { return pow(a, exponents); }, {0, 0, 0, 0, 0, kNan}),
             {0, kInf, 1, 0, -kInf, 0}));
}

TEST_CASE("a small denominator takes the gradient that there is") {
  const Tensor zero = tensor({0.0});
  CHECK(slope([&](const Tensor& t) { return div(zero, t); }, {-1e-310}) == Values{0});
  CHECK(slope([&](const Tensor& t) { return div(0.0, t); }, {-1e-310}) == Values{0});
  CHECK(slope([&](const Tensor& t) { return div(1e-200, t); }, {1e-200})[0] == Approx(-1e200).epsilon(1e-15));
}
