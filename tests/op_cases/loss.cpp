// Rows of the losses.
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/fused/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

constexpr Reduction kReductions[] = {Reduction::mean, Reduction::sum, Reduction::none};
const char* label_of(Reduction r) { return r == Reduction::mean ? "mean" : r == Reduction::sum ? "sum" : "none"; }

// The result from the losses of all entries. The mean divides by `count`.
Array reduced(Array single, Reduction r, double count) {
  if (r == Reduction::none) return single;
  long double sum = 0;
  for (double v : single.v) sum += v;
  return Array({}, Kind::real, static_cast<double>(r == Reduction::sum ? sum : sum / count));
}

// Shapes of targets with the number of classes.
std::vector<std::pair<Dims, int64_t>> target_shapes() {
  return {{{}, 5},   {{1}, 3},       {{4}, 2},     {{7}, 10}, {{3}, 1},    {{2, 3}, 4},  {{5}, 50},
          {{2}, 67}, {{2, 1, 3}, 6}, {{3, 4}, 17}, {{0}, 3},  {{3, 2}, 8}, {{3, 5}, 130}};
}

// -sum_j w_j q_j ln softmax(x)_j for each row. x holds logits, target (class indices or q) and perhaps weights w.
Array cross_entropies(const Arrays& x, const CrossEntropyOptions& o) {
  const int64_t classes = x[0].shape[x[0].shape.rank - 1], rows = classes == 0 ? 0 : x[0].size() / classes;
  const bool positions = x[1].kind == Kind::index;
  Array single(removed(x[0].shape, x[0].shape.rank - 1));
  long double divisor = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (positions && x[1].v[r] == static_cast<double>(o.ignore_index)) continue;
    const double* row = x[0].v.data() + r * classes;
    const long double top = *std::max_element(row, row + classes);
    long double sum = 0, loss = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(row[j] - top);
    for (int64_t j = 0; j < classes; ++j) {
      const double given = positions ? x[1].v[r] == static_cast<double>(j) : x[1].v[r * classes + j];
      const double q = (1 - o.label_smoothing) * given + o.label_smoothing / static_cast<double>(classes);
      const double w = x.size() > 2 ? x[2].v[j] : 1;
      loss += q * w * (top + std::log(sum) - row[j]);
      if (positions) divisor += w * given;
    }
    single.v[r] = static_cast<double>(loss);
    divisor += !positions;
  }
  if (positions && divisor == 0) divisor = INFINITY;  // the mean over no rows is 0
  return reduced(single, o.reduction, static_cast<double>(divisor));
}

Sample& add_entropies(OpCase& op, const Arrays& x, const CrossEntropyOptions& o, const std::string& label) {
  Sample& s = op.add(
      label, x,
      [=](const Tensors& t) {
        CrossEntropyOptions with = o;
        if (t.size() > 2) with.weight = t[2];
        return cross_entropy(t[0], t[1], with);
      },
      [=](const Arrays& a) { return cross_entropies(a, o); });
  s.length = static_cast<double>(x[0].size());
  // The sum of exponentials, at least 1, is rounded. A weight that all rows share cancels in the mean, so large terms
  // cancel.
  s.slope = x.size() > 2 ? 1 : 1 / kGradientConstant;
  return s;
}

void add_weighted(OpCase& op) {
  const auto add = [&](const Arrays& x, const CrossEntropyOptions& o, const std::string& label) -> Sample& {
    return add_entropies(op, x, o, label);
  };
  for (const auto& [shape, classes] : {std::pair<Dims, int64_t>{{}, 5}, {{4}, 2}, {{2, 3}, 4}, {{7}, 10}, {{0}, 3}})
    for (Reduction r : kReductions)
      for (double smoothing : {0.0, 0.1}) {
        const Dims wide = inserted(shape, shape.rank, classes);
        const CrossEntropyOptions o{.ignore_index = -7, .label_smoothing = smoothing, .reduction = r};
        const std::string label = text(label_of(r), " smoothing ", smoothing);
        Array target = op.draw.index(shape, classes);
        for (size_t i = 1; i < target.v.size(); i += 3) target.v[i] = -7;
        const bool smooth = !(r == Reduction::mean && shape == Dims{0});  // with distributions, no rows: mean 0/0
        const Array weight = op.draw.uniform({classes}, 0.5, 2), soft = op.draw.uniform(wide, 0, 1);
        add({op.draw.normal(wide, 0, 3), target, weight}, o, label + " weight");
        std::fill(target.v.begin(), target.v.end(), -7);
        add({op.draw.normal(wide, 0, 3), target, weight}, o, label + " weight all ignored");
        add({op.draw.normal(wide, 0, 3), soft}, o, label + " distributions").gradient = smooth;
        add({op.draw.normal(wide, 0, 3), soft, weight}, o, label + " distributions weight").gradient = smooth;
      }
  add({op.draw.normal({51, 1001}), op.draw.index({51}, 1001), op.draw.uniform({1001}, 0.5, 2)}, {}, "mean weight")
      .large = true;
  op.refuse({"[2, 3]", "[2]", "f32", "i64"}, [] { cross_entropy(reals({2, 3}), reals({2})); });
  op.refuse({"f64", "f32"}, [] { cross_entropy(reals({2, 3}), reals({2, 3}, DType::f64)); });
  op.refuse({"weight", "[2]", "[2, 3]"}, [] { cross_entropy(reals({2, 3}), reals({2, 3}), {.weight = reals({2})}); });
  op.refuse({"weight", "f64", "f32"}, [] {
    cross_entropy(reals({2, 3}), ids({0, 0}), {.weight = reals({3}, DType::f64)});
  });
}

OpCase cross_entropy_row() {
  OpCase op = row_of("Losses", "cross_entropy", "(logits, target, const CrossEntropyOptions& options = {})",
                     "-sum_j q_j ln softmax(logits)_j, q the (smoothed) one-hot target", tolerance::reduction);
  op.checks = 100;
  const auto add = [&](const Arrays& x, const CrossEntropyOptions& o, const std::string& label) -> Sample& {
    return add_entropies(op, x, o, label);
  };
  for (const auto& [shape, classes] : target_shapes())
    for (Reduction r : kReductions)
      for (double smoothing : {0.0, 0.1, 1.0})
        for (int64_t ignored : {int64_t{-100}, int64_t{-7}, classes - 1}) {
          const Dims wide = inserted(shape, shape.rank, classes);
          Array target = op.draw.index(shape, classes);
          if (ignored == -7)
            for (size_t i = 0; i < target.v.size(); i += 2) target.v[i] = -7;
          Sample& s = add({op.draw.normal(wide, 0, 3), target},
                          {.ignore_index = ignored, .label_smoothing = smoothing, .reduction = r},
                          text(label_of(r), " smoothing ", smoothing, " ignore ", ignored));
          const double terms = static_cast<double>(classes + (r == Reduction::none ? 0 : target.size()));
          s.tolerance = {op.tolerance.constant * std::sqrt(terms / std::max(1.0, s.length)), op.tolerance.scale, true};
        }
  for (double mean : {1e4, -1e4})
    add({op.draw.normal({3, 9}, mean), op.draw.index({3}, 9)}, {}, text("mean mean ", mean));
  add({op.draw.distinct({3, 9}, 70), op.draw.index({3}, 9)}, {}, "mean up to 945");
  add({op.draw.normal({51, 1001}), op.draw.index({51}, 1001)}, {}, "mean").large = true;
  add({op.draw.normal({5001, 10}), op.draw.index({5001}, 10)}, {.label_smoothing = 0.1}, "mean smoothing 0.1").large =
      true;
  add_weighted(op);
  op.refuse({"[2, 3]", "[3]"}, [] { cross_entropy(reals({2, 3}), integers({3})); });
  op.refuse({"f32", "i64"}, [] { cross_entropy(reals({2, 3}), reals({2})); });
  op.refuse({"3", "element 1"}, [] { cross_entropy(reals({2, 3}), ids({0, 3})); });
  op.refuse({"-1"}, [] { cross_entropy(reals({2, 3}), ids({0, -1})); });
  op.refuse({"id -100"}, [] { cross_entropy(reals({2, 3}), ids({-100, 0}), {.ignore_index = -1}); });
  op.refuse({"[2, 0]"}, [] { cross_entropy(reals({2, 0}), integers({2})); });
  op.refuse({"1.5"}, [] { cross_entropy(reals({2, 3}), ids({0, 0}), {.label_smoothing = 1.5}); });
  op.refuse({"i64"}, [] { cross_entropy(integers({2, 3}), integers({2})); });
  return op;
}

OpCase nll_row() {
  OpCase op = row_of("Losses", "nll_loss", "(x, target, const NllLossOptions& options = {})",
                     "-x_target for rows x of log-probabilities, times the weight of the class", tolerance::composite);
  op.checks = 50;
  const auto reference = [](const Arrays& x, const NllLossOptions& o) {
    const int64_t classes = x[0].shape[x[0].shape.rank - 1];
    Array single(x[1].shape);
    double divisor = 0;
    for (size_t r = 0; r < single.v.size(); ++r) {
      if (x[1].v[r] == static_cast<double>(o.ignore_index)) continue;
      const auto at = static_cast<int64_t>(x[1].v[r]);
      const double w = x.size() > 2 ? x[2].v[at] : 1;
      single.v[r] = -w * x[0].v[static_cast<int64_t>(r) * classes + at];
      divisor += w;
    }
    return reduced(single, o.reduction, divisor == 0 ? INFINITY : divisor);
  };
  const auto add = [&](const Arrays& x, const NllLossOptions& o, const std::string& label) -> Sample& {
    Sample& s = op.add(
        label, x,
        [=](const Tensors& t) {
          NllLossOptions with = o;
          if (t.size() > 2) with.weight = t[2];
          return nll_loss(t[0], t[1], with);
        },
        [=](const Arrays& a) { return reference(a, o); });
    s.length = static_cast<double>(x[1].size());
    s.slope = x.size() > 2 ? 1 : 0;
    return s;
  };
  for (const auto& [shape, classes] : target_shapes())
    for (Reduction r : kReductions)
      for (bool weighted : {false, true}) {
        const Dims wide = inserted(shape, shape.rank, classes);
        Array target = op.draw.index(shape, classes);
        const NllLossOptions o{.ignore_index = weighted ? -7 : -100, .reduction = r};
        if (weighted)
          for (size_t i = 1; i < target.v.size(); i += 3) target.v[i] = -7;
        Arrays x = {op.draw.uniform(wide, -3, 0), target};
        if (weighted) x.push_back(op.draw.uniform({classes}, 0.5, 2));
        add(x, o, text(label_of(r), weighted ? " weight" : ""));
      }
  add({op.draw.uniform({5001, 10}, -3, 0), op.draw.index({5001}, 10)}, {}, "mean").large = true;
  Array ignored({2, 2}), rows({2}, Kind::index);
  ignored.v = {-1, -2, NAN, -HUGE_VAL}, rows.v = {1, -100};
  add({ignored, rows}, {}, "mean NaN in an ignored row").gradient = false;
  op.refuse({"[2, 3]", "[3]"}, [] { nll_loss(reals({2, 3}), integers({3})); });
  op.refuse({"f32", "i64"}, [] { nll_loss(reals({2, 3}), reals({2})); });
  op.refuse({"3", "element 1"}, [] { nll_loss(reals({2, 3}), ids({0, 3})); });
  op.refuse({"[2, 0]"}, [] { nll_loss(reals({2, 0}), integers({2})); });
  op.refuse({"i64"}, [] { nll_loss(integers({2, 3}), integers({2})); });
  op.refuse({"weight", "[2]", "[2, 3]"}, [] { nll_loss(reals({2, 3}), ids({0, 0}), {.weight = reals({2})}); });
  return op;
}

OpCase linear_cross_entropy_row() {
  OpCase op =
      row_of("Fused", "linear_cross_entropy", "(x, weight, bias, target, const CrossEntropyOptions& options = {})",
             "cross_entropy(linear(x, weight, bias), target)", tolerance::composite);
  op.checks = 100, op.parameters = 2;
  const auto add = [&](const std::string& label, const Arrays& x, const CrossEntropyOptions& o) -> Sample& {
    Sample& s = op.add(
        label, x,
        [=](const Tensors& t) { return linear_cross_entropy(t[0], t[2], t.size() > 3 ? t[3] : Tensor(), t[1], o); },
        [=](const Arrays& a) {
          return cross_entropies({affine(a[0], a[2], a.size() > 3 ? &a[3] : nullptr), a[1]}, o);
        });
    s.length = static_cast<double>(std::max(x[0].size(), x[2].size()));
    return s;
  };
  for (const auto& [shape, classes] : target_shapes())
    for (int64_t width : {3, 8})
      for (bool bias : {false, true})
        for (const CrossEntropyOptions& o : {CrossEntropyOptions{}, CrossEntropyOptions{.reduction = Reduction::sum},
                                             CrossEntropyOptions{.ignore_index = 0, .label_smoothing = 0.1},
                                             CrossEntropyOptions{.reduction = Reduction::none}}) {
          Arrays x = {op.draw.normal(inserted(shape, shape.rank, width)), op.draw.index(shape, classes),
                      op.draw.normal({classes, width})};
          if (bias) x.push_back(op.draw.normal({classes}));
          add(text(label_of(o.reduction), o.ignore_index == 0 ? " ignore smoothing" : ""), x, o);
        }
  add("mean", {op.draw.normal({151, 16}), op.draw.index({151}, 333), op.draw.normal({333, 16})}, {}).large = true;
  op.refuse({"[2, 3]", "[5, 4]"}, [] { linear_cross_entropy(reals({2, 3}), reals({5, 4}), {}, integers({2})); });
  op.refuse({"[2, 3]", "[3]"}, [] { linear_cross_entropy(reals({2, 3}), reals({5, 3}), {}, integers({3})); });
  op.refuse({"5", "element 1"}, [] { linear_cross_entropy(reals({2, 3}), reals({5, 3}), {}, ids({0, 5})); });
  op.refuse({"[2, 3]", "[5, 4]"}, [] {
    linear_cross_entropy(reals({2, 3}), reals({5, 4}), {}, integers({2}), {.reduction = Reduction::none});
  });
  op.refuse({"f32", "f64"}, [] { linear_cross_entropy(reals({2, 3}), reals({5, 3}, DType::f64), {}, integers({2})); });
  op.refuse({"[3]", "[4, 3]"}, [] { linear_cross_entropy(reals({2, 3}), reals({4, 3}), reals({3}), integers({2})); });
  op.refuse({"-1"}, [] {
    linear_cross_entropy(reals({2, 3}), reals({4, 3}), {}, ids({0, 0}), {.label_smoothing = -1});
  });
  return op;
}

using Loss = std::function<Tensor(const Tensor&, const Tensor&, Reduction)>;

struct Variant {
  const char* label;
  Loss call;
  double (*single)(double x, double target);
};

// A row for a loss of two tensors. x - target stays away from `kinks`; targets lie in [lo, hi].
OpCase pairwise_row(std::string name, const std::string& parameters, std::string formula, Tolerance tolerance,
                    const std::vector<Variant>& variants, const std::vector<double>& kinks, double lo, double hi,
                    double lo_x = -3, double hi_x = 3) {
  OpCase op = row_of("Losses", name, parameters, std::move(formula), tolerance);
  op.checks = 50;
  for (const Variant& v : variants)
    for (const Dims& shape : shapes_and_large())
      for (Reduction r : kReductions) {
        Arrays x = {op.draw.uniform(shape, lo_x, hi_x, kinks), op.draw.uniform(shape, lo, hi)};
        if (!kinks.empty())
          for (size_t i = 0; i < x[0].v.size(); ++i) x[0].v[i] += x[1].v[i];
        Sample& s = op.add(
            label_of(r) + std::string(v.label), x,
            [call = v.call, r](const Tensor& t, const Tensor& target) { return call(t, target, r); },
            [single = v.single, r](Array y, const Array& target) {
              for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = single(y.v[i], target.v[i]);
              return reduced(y, r, static_cast<double>(y.size()));
            });
        s.length = r == Reduction::none ? 1 : static_cast<double>(x[0].size());
        s.large = shape == kLarge;
        s.gradient = !(r == Reduction::mean && is_empty(shape));
      }
  const Loss& call = variants[0].call;
  op.refuse({"[2, 3]", "[3]"}, [=] { call(reals({2, 3}), reals({3}), Reduction::mean); });
  op.refuse({"f32", "f64"}, [=] { call(reals({2}), reals({2}, DType::f64), Reduction::mean); });
  op.refuse({"i64"}, [=] { call(integers({2}), integers({2}), Reduction::mean); });
  return op;
}

double huber(double d, double delta) { return std::fabs(d) <= delta ? d * d / 2 : delta * (std::fabs(d) - delta / 2); }
double softplus_of(double v) { return std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v))); }

Variant huber_by(const char* label, double delta, double (*single)(double, double)) {
  return {label, [=](const Tensor& x, const Tensor& t, Reduction r) { return huber_loss(x, t, delta, r); }, single};
}

Variant smooth_by(const char* label, double beta, double (*single)(double, double)) {
  return {label, [=](const Tensor& x, const Tensor& t, Reduction r) { return smooth_l1_loss(x, t, beta, r); }, single};
}

}  // namespace

std::vector<OpCase> loss_cases() {
  const char* const plain = "(x, target, Reduction reduction = Reduction::mean)";
  const Tolerance near{8, Scale::unit};
  std::vector<OpCase> all = {cross_entropy_row(), nll_row()};
  all.push_back(pairwise_row("mse_loss", plain, "(x - target)^2", near,
                             {{"", mse_loss, [](double x, double t) { return (x - t) * (x - t); }}}, {}, -3, 3));
  all.push_back(pairwise_row("l1_loss", plain, "|x - target|", near,
                             {{"", l1_loss, [](double x, double t) { return std::fabs(x - t); }}}, {0}, -3, 3));
  all.push_back(pairwise_row("huber_loss", "(x, target, double delta = 1, Reduction reduction = Reduction::mean)",
                             "d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), d = x - target", near,
                             {huber_by(" delta 1", 1, [](double x, double t) { return huber(x - t, 1); }),
                              huber_by(" delta 0.5", 0.5, [](double x, double t) { return huber(x - t, 0.5); }),
                              huber_by(" delta 1.5", 1.5, [](double x, double t) { return huber(x - t, 1.5); })},
                             {-1, 1, -0.5, 0.5, -1.5, 1.5}, -3, 3));
  all.back().refuse({"delta is 0"}, [] { huber_loss(reals({2}), reals({2}), 0); });
  all.push_back(pairwise_row("smooth_l1_loss", "(x, target, double beta = 1, Reduction reduction = Reduction::mean)",
                             "d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, d = x - target", near,
                             {smooth_by(" beta 1", 1, [](double x, double t) { return huber(x - t, 1); }),
                              smooth_by(" beta 0.5", 0.5, [](double x, double t) { return huber(x - t, 0.5) / 0.5; }),
                              smooth_by(" beta 0", 0, [](double x, double t) { return std::fabs(x - t); })},
                             {-1, 1, -0.5, 0.5, 0}, -3, 3));
  all.back().refuse({"beta is -1"}, [] { smooth_l1_loss(reals({2}), reals({2}), -1); });
  const Loss logarithmic = [](const Tensor& x, const Tensor& t, Reduction r) { return kl_div(x, t, r, true); };
  all.push_back(pairwise_row(
      "kl_div", "(x, target, Reduction reduction = Reduction::mean, bool log_target = false)",
      "target (ln target - x) of log-probabilities x, 0 where target is 0; of logarithms of targets with log_target",
      tolerance::composite,
      {{"", [](const Tensor& x, const Tensor& t, Reduction r) { return kl_div(x, t, r); },
        [](double x, double t) { return t == 0 ? 0 : t * (std::log(t) - x); }},
       {" log_target", logarithmic, [](double x, double t) { return std::exp(t) * (t - x); }}},
      {}, 0.1, 1));
  Array sparse({6});
  sparse.v = {0, 0.5, 0, 0.25, 0.25, 0};
  all.back()
      .add(
          "target 0", {sparse}, [](const Tensor& t) { return kl_div(t, t, Reduction::none); },
          [](Array y) {
            for (double& v : y.v) v = v == 0 ? 0 : v * (std::log(v) - v);
            return y;
          })
      .gradient = false;
  all.push_back(pairwise_row("binary_cross_entropy_with_logits", plain,
                             "-(target ln p + (1 - target) ln(1 - p)), p = sigmoid(x)", near,
                             {{"", binary_cross_entropy_with_logits,
                               [](double x, double t) { return t * softplus_of(-x) + (1 - t) * softplus_of(x); }}},
                             {}, 0, 1));
  OpCase bce = pairwise_row(
      "binary_cross_entropy", plain, "-(target ln x + (1 - target) ln(1 - x)), logarithms at least -100", near,
      {{"", binary_cross_entropy, [](double x, double t) { return -(t * std::log(x) + (1 - t) * std::log1p(-x)); }}},
      {}, 0, 1, 0.1, 0.9);
  Array ends({3});
  ends.v = {0, 1, 0.5};
  bce.add(
      "at the ends", {ends}, [](const Tensor& t) { return binary_cross_entropy(t, sub(1, t), Reduction::none); },
      [](Array y) {
        for (double& v : y.v) v = v == 0.5 ? std::log(2.) : 100;
        return y;
      });
  bce.samples.back().gradient = false;
  bce.refuse({"2", "[0, 1]"}, [] { binary_cross_entropy(full({2}, 2, options_of(DType::f32)).to(kCpu), zeros({2})); });
  all.push_back(std::move(bce));
  return all;
}

std::vector<OpCase> linear_cross_entropy_cases() { return {linear_cross_entropy_row()}; }

}  // namespace isonorm::test
