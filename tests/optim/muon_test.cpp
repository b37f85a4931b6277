// Newton-Schulz against its polynomial on known singular values, and the errors of Muon.
#include "optim/muon.h"
#include "tests/support/ops.h"
#include "tests/support/test_device.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::on_test_device;

namespace {

// [rows, columns] with the singular values s: a rotation of the first two rows times a diagonal times a rotation of the
// first two columns.
Tensor with_singular_values(const std::vector<double>& s, int64_t rows, int64_t columns) {
  std::vector<double> x(rows * columns, 0.0);
  const double c1 = std::cos(0.7), s1 = std::sin(0.7), c2 = std::cos(2.1), s2 = std::sin(2.1);
  for (size_t i = 2; i < s.size(); ++i) x[i * columns + i] = s[i];
  x[0] = c1 * s[0] * c2 - s1 * s[1] * s2, x[1] = -c1 * s[0] * s2 - s1 * s[1] * c2;
  x[columns] = s1 * s[0] * c2 + c1 * s[1] * s2, x[columns + 1] = -s1 * s[0] * s2 + c1 * s[1] * c2;
  return on_test_device(x, {rows, columns});
}

}  // namespace

TEST_CASE("Newton-Schulz applies its polynomial to the singular values and keeps the vectors") {
  const std::vector<double> values{3, 0.5, 1, 0.02};
  const double norm = std::sqrt(9 + 0.25 + 1 + 0.0004);
  const optim::MuonOptions o;
  std::vector<double> mapped;
  for (double s : values) {
    double x = s / norm;
    for (int i = 0; i < o.ns_steps; ++i) x = o.a * x + o.b * x * x * x + o.c * x * x * x * x * x;
    CHECK(x > 0.6);
    CHECK(x < 1.25);
    mapped.push_back(x);
  }
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 4}, {4, 7}, {6, 4}}) {
    const Tensor y = optim::newton_schulz(with_singular_values(values, rows, columns), o);
    CHECK(y.shape() == Dims{rows, columns});
    CHECK(y.is_contiguous());
    const auto ours = y.to_vector<double>(), expected = with_singular_values(mapped, rows, columns).to_vector<double>();
    for (size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(expected[i]).margin(1e-13));
  }
}

TEST_CASE("Newton-Schulz of nothing but zeros is zero") {
  const Tensor y = optim::newton_schulz(on_test_device<double>({0, 0, 0, 0}, {2, 2}), {});
  CHECK(y.to_vector<double>() == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("the scale of a Muon step depends on the shape") {
  for (const auto& [scale, factor] : {std::pair{optim::MuonScale::original, std::sqrt(4.0)},
                                      {optim::MuonScale::match_rms_adamw, 0.2 * std::sqrt(8.0)},
                                      {optim::MuonScale::spectral_unclamped, 2.0},
                                      {optim::MuonScale::none, 1.0}}) {
    const Tensor g = with_singular_values({1, 2}, 8, 2);
    Tensor p = require_grad(on_test_device(std::vector<double>(16, 0.0), {8, 2}));
    const optim::MuonOptions options{.lr = 0.1, .momentum = 0, .scale = scale};
    optim::Muon opt({p}, options);
    set_grad(p, g);
    opt.step();
    const auto moved = p.to_vector<double>(), step = optim::newton_schulz(g, options).to_vector<double>();
    for (size_t i = 0; i < moved.size(); ++i) CHECK(moved[i] == Approx(-0.1 * factor * step[i]).margin(1e-15));
  }
}

TEST_CASE("Muon's groups: matrices first, then AdamW's parameters, each with its rate") {
  Tensor a = require_grad(on_test_device<double>({1, 2, 3, 4}, {2, 2})),
         b = require_grad(on_test_device(tensor({1.0})));
  optim::Muon opt({{{a}, {.lr = 0.5}}}, {{{b}, {.lr = 0.25, .weight_decay = 0}}});
  CHECK(opt.groups() == 2);
  CHECK(opt.lr(1) == 0.25);
  set_grad(a, on_test_device<double>({1, 0, 0, 1}, {2, 2})), set_grad(b, on_test_device(tensor({3.0})));
  opt.step();
  CHECK(b.item() == Approx(0.75).epsilon(1e-8));  // Adam's first step has length lr
  CHECK(opt.state_dict().at("0.momentum_buffer").to_vector<double>()[0] == Approx(0.05).epsilon(1e-14));
  CHECK(opt.state_dict().at("1.exp_avg").item() == Approx(0.3).epsilon(1e-14));
}

TEST_CASE("what Muon refuses") {
  Tensor m = require_grad(on_test_device<double>({1, 2}, {1, 2})), v = require_grad(on_test_device(tensor({1.0})));
  CHECK_THROWS_WITH(optim::Muon({v}),
                    "muon: parameter 0 has shape [1], expected a matrix; give it to the AdamW groups");
  CHECK_THROWS_WITH(optim::Muon({m}, {.ns_steps = 0}), "muon: ns_steps is 0, expected a number from 1 to 99");
  CHECK_THROWS_WITH(optim::Muon({m}, {.momentum = 1}), Contains("muon: momentum is 1"));
  CHECK_THROWS_WITH(optim::newton_schulz(v, {}), Contains("shape is [1], expected a matrix"));
  CHECK_THROWS_WITH(optim::Muon({{{m}, {}}}, {{{m}, {}}}), Contains("is in group 0 and in group 1"));
}
