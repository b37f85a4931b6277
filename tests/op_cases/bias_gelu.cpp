// Rows of the activation fused with a bias.
#include "autograd/fused/bias_gelu.h"

#include <cmath>
#include <numbers>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

const char* label_of(GeluForm form) { return form == GeluForm::erf ? "erf" : "tanh"; }

Array gelu_of(const Array& x, const Array& bias, GeluForm form) {
  return tabulate(x.shape, [&](const Dims& i) {
    const long double v = static_cast<long double>(x.at(i)) + bias.stretched(i);
    const long double u = std::sqrt(2 / std::numbers::pi_v<long double>) * (v + 0.044715L * v * v * v);
    return static_cast<double>(form == GeluForm::erf ? v / 2 * std::erfc(-v / std::numbers::sqrt2_v<long double>)
                                                     : v / (1 + std::exp(-2 * u)));
  });
}

}  // namespace

std::vector<OpCase> bias_gelu_cases() {
  OpCase op{.name = "bias_gelu",
            .group = "Fused",
            .signature = "bias_gelu(x, bias, GeluForm form = GeluForm::erf)",
            .formula = "gelu(x + bias)",
            .tolerance = tolerance::reduction};
  Draw draw(op.name);
  std::vector<Dims> all = shapes(1);
  all.push_back(kLarge);
  for (GeluForm form : {GeluForm::erf, GeluForm::tanh})
    for (const Dims& shape : all)
      op.add(
            label_of(form), {draw.uniform(shape, -3, 3), draw.normal({shape[shape.rank - 1]})},
            [form](const Tensors& x) { return bias_gelu(x[0], x[1], form); },
            [form](const Arrays& x) { return gelu_of(x[0], x[1], form); })
          .large = shape == kLarge;
  op.refuse({"[2, 3]", "[2]"}, [] { bias_gelu(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "f64"}, [] { bias_gelu(reals({2, 3}), reals({3}, DType::f64)); });
  op.refuse({"i64"}, [] { bias_gelu(integers({2, 3}), integers({3})); });
  op.refuse({"[]"}, [] { bias_gelu(reals({}), reals({1})); });
  return {op};
}

std::vector<FusedCase> bias_gelu_fused_cases() {
  FusedCase f{.name = "bias_gelu"};
  Draw draw("fused bias_gelu");
  for (GeluForm form : {GeluForm::erf, GeluForm::tanh})
    for (const Dims& shape : shapes(1))
      f.add(
          label_of(form), {draw.normal(shape), draw.normal({shape[shape.rank - 1]})},
          [form](const Tensors& x) { return bias_gelu(x[0], x[1], form); },
          [form](const Tensors& x) { return reference::bias_gelu(x[0], x[1], form); });
  return {f};
}

}  // namespace isonorm::test
