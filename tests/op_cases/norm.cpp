// Rows of the norms and of the fused residual addition.
#include "autograd/ops/norm.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/pointwise.h"
#include "tests/op_cases/groups.h"
#include "tests/support/norm_reference.h"

namespace isonorm::test {
namespace {

std::string label_of(const NormSpec& s) { return text(name_of(s.kind), s.p == 1 ? "" : text(" p ", s.p)); }

using Call = std::function<Tensors(const Tensors&, const NormSpec&, const Tensor& gain, const Tensor& bias)>;
using Reference = std::function<Arrays(const Arrays&, const NormSpec&, const Array* gain, const Array* bias)>;

// Size of the terms that a gradient sums: gain / s for the row with the smallest spread, s = sqrt(spread^2 + eps). With
// `rounded`: (1 + |x| / s) gain / s, because an input near its mean has lost digits in this ratio.
double steepness(const Arrays& x, size_t inputs, const NormSpec& spec, bool rounded = true) {
  if (spec.kind == NormKind::none) return 0;
  const int64_t width = x[0].shape[x[0].shape.rank - 1];
  double worst = 0;
  for (int64_t begin = 0; begin < x[0].size(); begin += width) {
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = begin; i < begin + width; ++i) {
      const double v = x[0].v[i] + (inputs > 1 ? x[1].v[i] : 0);
      sum += v;
      squares += v * v;
      largest = std::max(largest, std::abs(v));
    }
    const double n = static_cast<double>(width), mean = spec.kind == NormKind::layer ? sum / n : 0;
    const double s = std::sqrt(std::max(0.0, squares / n - mean * mean) + spec.eps);
    worst = std::max(worst, 2 * (1 + (rounded ? largest / s : 0)) / s);
  }
  return worst;
}

// Adds samples with rows of different widths, means and spreads. The first `inputs` tensors have the shape of x.
void add_samples(OpCase& op, size_t inputs, const NormSpec& spec, bool all_affine, const Call& call,
                 const Reference& reference) {
  Draw draw(text(op.name, name_of(spec.kind), spec.p));
  const auto add = [&](const Dims& shape, const Affine& affine, NormSpec s, const std::string& label, double mean,
                       double deviation) -> Sample& {
    Arrays x;
    for (size_t k = 0; k < inputs; ++k) x.push_back(draw.normal(shape, k ? 0 : mean, deviation));
    affine.draw(draw, shape, x);
    const int64_t width = shape[shape.rank - 1];
    if (norm_entries(s, width) == 1) s.eps = 0.3;  // near 0 the norm of a single number is a step of width sqrt(eps)
    Sample& sample = op.add(
        label + affine.label, x,
        [=](const Tensors& t) { return call(t, s, affine.gain_of(t, inputs), affine.bias_of(t, inputs)); },
        [=](const Arrays& a) { return reference(a, s, affine.gain_of(a, inputs), affine.bias_of(a, inputs)); });
    sample.length = static_cast<double>(width);
    sample.slope = steepness(x, inputs, s);
    // The sum's own gradient is near 1. Its rounding hides second derivatives of the norm, which are near 1 / mean^2.
    if (inputs == 2 && mean == 1e4) sample.absolute = 1e-7;
    return sample;
  };
  const std::string kind = label_of(spec);
  for (const Affine& affine : kAffine) {
    if (!all_affine && affine.gain != affine.bias) continue;
    for (const Dims& shape : shapes(1)) add(shape, affine, spec, kind, 0, 1);
    for (const Dims& shape : {Dims{3, 5}, Dims{2, 33}}) {
      NormSpec wide = spec;
      wide.eps = 0.3;
      add(shape, affine, wide, kind + " eps 0.3", 0, 1);
      add(shape, affine, spec, kind + " mean 3", 3, 1);
      add(shape, affine, spec, kind + " mean 1e4", 1e4, 1);
      add(shape, affine, spec, kind + " deviation 1e-3", 0, 1e-3);
      add(shape, affine, spec, kind + " deviation 1e3", 0, 1e3);
    }
  }
  // Sums of `width` terms, then a few roundings of a result of this size.
  for (int64_t width : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 191, 300, 1000})
    for (const Affine& affine : {kAffine[0], kAffine[2]}) {
      Sample& s = add({5, width}, affine, spec, kind + " mean 0.7 deviation 2", 0.7, 2);
      s.tolerance = {(affine.gain ? 3 : 1) * (4 / std::sqrt(s.length) + 1), Scale::unit,
                     inputs == 1 && spec.kind != NormKind::none};
      s.gradient = false;
    }
  add({171, 301}, kAffine[2], spec, kind, 0, 1).large = true;
  add({171, 301}, kAffine[0], spec, kind, 0, 1).large = true;
}

template <class F> void add_refusals(OpCase& op, F call) {
  op.refuse({"rank 0"}, [=] { call(reals({}), Tensor(), Tensor()); });
  op.refuse({"[2, 3]", "[2]"}, [=] { call(reals({2, 3}), reals({2}), Tensor()); });
  op.refuse({"[2, 3]", "[4]"}, [=] { call(reals({2, 3}), Tensor(), reals({4})); });
  op.refuse({"f32", "f64"}, [=] { call(reals({2, 3}), reals({3}, DType::f64), Tensor()); });
  op.refuse({"i64"}, [=] { call(integers({2, 3}), Tensor(), Tensor()); });
}

using Norm = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, NormOptions);

OpCase norm_row(NormKind kind, Norm norm, std::string formula) {
  const std::string name = name_of(kind);
  OpCase op = row_of("Norms", name, "(x, gain = {}, bias = {}, NormOptions options = {})", std::move(formula),
                     tolerance::composite);
  op.stretch_rows = kind != NormKind::layer, op.checks = 100;
  for (double p : {1.0, 0.4}) {
    if (p != 1 && kind != NormKind::rms) continue;
    add_samples(
        op, 1, {.kind = kind, .p = p}, true,
        [=](const Tensors& x, const NormSpec& s, const Tensor& gain, const Tensor& bias) {
          return Tensors{norm(x[0], gain, bias, {.eps = s.eps, .p = s.p})};
        },
        [](const Arrays& x, const NormSpec& s, const Array* gain, const Array* bias) {
          return Arrays{normalized(x[0], s, gain, bias)};
        });
  }
  add_refusals(op, [=](const Tensor& x, const Tensor& gain, const Tensor& bias) { norm(x, gain, bias, {}); });
  op.refuse({"eps is -1"}, [=] { norm(reals({2, 3}), {}, {}, {.eps = -1}); });
  op.refuse({kind == NormKind::rms ? "p is 0" : "only rms_norm has a partial form"}, [=] {
    norm(reals({2, 3}), {}, {}, {.p = kind == NormKind::rms ? 0 : 0.5});
  });
  return op;
}

OpCase options_row(NormKind kind, Tensor (*norm)(const Tensor&, NormOptions)) {
  OpCase op = row_of("Norms", name_of(kind), "(x, NormOptions options)", "the same without gain and bias",
                     tolerance::composite);
  op.stretch_rows = false, op.checks = 1;
  for (const Dims& shape : {Dims{3, 5}, Dims{2, 33}, Dims{171, 301}})
    op.add(
          "eps 0.3", {op.draw.normal(shape)}, [=](const Tensors& x) { return norm(x[0], {.eps = 0.3}); },
          [=](const Arrays& x) { return normalized(x[0], {.kind = kind, .eps = 0.3}, nullptr, nullptr); })
        .large = shape[0] == 171;
  op.refuse({"i64"}, [=] { norm(integers({2, 3}), {}); });
  return op;
}

constexpr NormSpec kSpecs[] = {{.kind = NormKind::none}, {.kind = NormKind::layer},
                               {.kind = NormKind::rms},  {.kind = NormKind::rms, .p = 0.3},
                               {.kind = NormKind::crms}, {.kind = NormKind::crms_isometric}};

OpCase normalize_row() {
  OpCase op =
      row_of("Norms", "normalize", "(x, const NormSpec& spec, gain = {}, bias = {}, std::optional<DType> as = {})",
             "the norm that spec names; x gain + bias for none", tolerance::composite);
  op.stretch_rows = false, op.checks = 100;
  for (const NormSpec& spec : kSpecs)
    add_samples(
        op, 1, spec, false,
        [](const Tensors& x, const NormSpec& s, const Tensor& gain, const Tensor& bias) {
          return Tensors{normalize(x[0], s, gain, bias)};
        },
        [](const Arrays& x, const NormSpec& s, const Array* gain, const Array* bias) {
          return Arrays{normalized(x[0], s, gain, bias)};
        });
  add_refusals(op, [](const Tensor& x, const Tensor& gain, const Tensor& bias) { normalize(x, {}, gain, bias); });
  return op;
}

OpCase add_norm_row() {
  OpCase op = row_of("Fused", "add_norm",
                     "(x, branch, const NormSpec& spec, gain = {}, bias = {}, std::optional<DType> as = {})",
                     "sum = x + branch, normed = normalize(sum)", tolerance::composite);
  op.stretch_rows = false, op.checks = 100;
  for (const NormSpec& spec : kSpecs)
    add_samples(
        op, 2, spec, false,
        [](const Tensors& x, const NormSpec& s, const Tensor& gain, const Tensor& bias) {
          const AddNorm r = add_norm(x[0], x[1], s, gain, bias);
          return Tensors{r.sum, r.normed};
        },
        [](const Arrays& x, const NormSpec& s, const Array* gain, const Array* bias) {
          Array sum = x[0];
          for (size_t i = 0; i < sum.v.size(); ++i) sum.v[i] += x[1].v[i];
          return Arrays{sum, normalized(sum, s, gain, bias)};
        });
  op.refuse({"[2, 3]", "[3]"}, [] { add_norm(reals({2, 3}), reals({3}), {}); });
  op.refuse({"f32", "f64"}, [] { add_norm(reals({2, 3}), reals({2, 3}, DType::f64), {}); });
  op.refuse({"[2, 3]", "[2]"}, [] { add_norm(reals({2, 3}), reals({2, 3}), {}, reals({2})); });
  op.refuse({"i64"}, [] { add_norm(integers({2, 3}), integers({2, 3}), {}); });
  return op;
}

}  // namespace

std::vector<OpCase> norm_cases() {
  return {norm_row(NormKind::layer, layer_norm, "(x - mean) / sqrt(var + eps) gain + bias"),
          norm_row(NormKind::rms, rms_norm,
                   "x / sqrt(mean of x^2 + eps) gain + bias; over the leading share p of the entries"),
          norm_row(NormKind::crms, crms_norm, "x / sqrt((sum x^2 + (sum x)^2) / (d + 1) + eps) gain + bias"),
          norm_row(NormKind::crms_isometric, crms_isometric_norm, "x / sqrt(sum x^2 / (d + 1) + eps) gain + bias"),
          options_row(NormKind::layer, layer_norm),
          options_row(NormKind::rms, rms_norm),
          normalize_row(),
          add_norm_row()};
}

FusedCase add_norm_fused_case() {
  FusedCase f{.name = "add_norm", .parameters = 2};
  Draw draw("fused add_norm");
  const auto add = [&](NormSpec spec, const Dims& shape, const Affine& affine, double mean) {
    // Around a mean, the rows vary by one bf16 step, and the entries of a branch are smaller than that.
    const double spread = mean == 0 ? 1 : mean * epsilon(DType::bf16);
    Arrays x = {draw.normal(shape, mean, spread), draw.normal(shape, 0, mean == 0 ? 1 : spread / 4)};
    affine.draw(draw, shape, x);
    spec.eps = mean == 0 ? 1e-5 : spread * spread;
    const auto with = [=](auto call) {
      return [=](const Tensors& t) {
        const AddNorm r = call(t[0], t[1], spec, affine.gain_of(t, 2), affine.bias_of(t, 2), std::nullopt);
        return Tensors{r.sum, r.normed};
      };
    };
    const auto stored = [=](const Tensors& t, FusedCase::Sample::Stored store) {
      const Tensor sum = store(isonorm::add(t[0], t[1]));
      return Tensors{sum, normalize(sum, spec, affine.gain_of(t, 2), affine.bias_of(t, 2))};
    };
    f.samples.push_back({text(label_of(spec), affine.label, " mean ", mean), x, with(isonorm::add_norm),
                         with(reference::add_norm), stored, steepness(x, 2, spec, false)});
  };
  for (const NormSpec& spec : kSpecs)
    for (const Affine& affine : kAffine) {
      for (const Dims& shape : shapes(1)) add(spec, shape, affine, 0);
      for (const Dims& shape : {Dims{3, 4}, Dims{5, 33}, Dims{2, 260}}) add(spec, shape, affine, 16);
    }
  return f;
}

}  // namespace isonorm::test
