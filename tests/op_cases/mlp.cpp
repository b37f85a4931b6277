// Rows of a block's feed-forward part.
#include "autograd/fused/mlp.h"

#include <cmath>
#include <numbers>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

const char* label_of(GeluForm form) { return form == GeluForm::erf ? "erf" : "tanh"; }

long double gelu_of(long double v, GeluForm form) {
  const long double u = std::sqrt(2 / std::numbers::pi_v<long double>) * (v + 0.044715L * v * v * v);
  return form == GeluForm::erf ? v / 2 * std::erfc(-v / std::numbers::sqrt2_v<long double>)
                               : v / (1 + std::exp(-2 * u));
}

Array mlp_of(const Arrays& a, GeluForm form) {
  const bool biased = a.size() == 5;
  Array h = affine(a[0], a[1], biased ? &a[3] : nullptr);
  for (double& v : h.v) v = static_cast<double>(gelu_of(v, form));
  return affine(h, a[2], biased ? &a[4] : nullptr);
}

struct Sizes {
  Dims x;
  int64_t hidden, out;
  bool large() const { return hidden >= 600; }
};
// Sizes around the blocks of the kernel: 6 rows, panels of 8 to 64, a depth of 512; and sizes 1 and 0.
const std::vector<Sizes> kSizes = {{{3}, 4, 2},        {{1, 1}, 1, 1},       {{2, 3, 5}, 8, 4},   {{7, 16}, 64, 16},
                                   {{13, 17}, 65, 19}, {{0, 4}, 3, 2},       {{4, 0}, 3, 2},      {{5, 3}, 7, 0},
                                   {{2, 2, 2}, 0, 3},  {{70, 33}, 1100, 50}, {{210, 70}, 600, 40}};

Arrays draw_layers(Draw& draw, const Sizes& s, bool bias) {
  const int64_t in = s.x[s.x.rank - 1];
  const auto weight = [&](int64_t out, int64_t in) {  // scaled to keep the size of the rows
    const double bound = std::sqrt(3. / static_cast<double>(std::max<int64_t>(1, in)));
    return draw.uniform({out, in}, -bound, bound);
  };
  Arrays a = {draw.normal(s.x), weight(s.hidden, in), weight(s.out, s.hidden)};
  if (bias) a.insert(a.end(), {draw.normal({s.hidden}), draw.normal({s.out})});
  return a;
}

Tensor run(const Tensors& t, GeluForm form) {
  const bool bias = t.size() == 5;
  return mlp(t[0], t[1], bias ? t[3] : Tensor(), t[2], bias ? t[4] : Tensor(), form);
}

}  // namespace

std::vector<OpCase> mlp_cases() {
  OpCase op = row_of("Fused", "mlp", "(x, w1, b1, w2, b2, GeluForm form = GeluForm::erf)",
                     "gelu(x W1^T + b1) W2^T + b2, w1 [hidden, in], w2 [out, hidden]", tolerance::product);
  op.parameters = 1;
  for (GeluForm form : {GeluForm::erf, GeluForm::tanh})
    for (bool bias : {false, true})
      for (const Sizes& s : kSizes) {
        auto& sample = op.add(
            label_of(form), draw_layers(op.draw, s, bias), [form](const Tensors& t) { return run(t, form); },
            [form](const Arrays& a) { return mlp_of(a, form); });
        sample.length = static_cast<double>(s.hidden + s.x[s.x.rank - 1]);
        sample.large = s.large();
      }
  const auto call = [](const Dims& x, const Dims& w1, const Dims& w2, DType dtype = DType::f32) {
    mlp(reals(x), reals(w1, dtype), {}, reals(w2, dtype), {});
  };
  op.refuse({"w1", "[4, 5]", "3"}, [call] { call({2, 3}, {4, 5}, {3, 4}); });
  op.refuse({"w2", "[3, 5]", "4"}, [call] { call({2, 3}, {4, 3}, {3, 5}); });
  op.refuse({"f32", "f64"}, [call] { call({2, 3}, {4, 3}, {3, 4}, DType::f64); });
  op.refuse({"[5]", "w1", "[4, 3]"}, [] { mlp(reals({2, 3}), reals({4, 3}), reals({5}), reals({3, 4}), {}); });
  op.refuse({"i64"}, [] { mlp(integers({2, 3}), reals({4, 3}), {}, reals({3, 4}), {}); });
  op.refuse({"[]"}, [] { mlp(reals({}), reals({4, 3}), {}, reals({3, 4}), {}); });
  return {op};
}

}  // namespace isonorm::test
