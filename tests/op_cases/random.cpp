// Rows of random functions: range, moments and reproducibility (every call has its own generator); dropout is compared
// with its mask.
#include "autograd/ops/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/ops/create.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

constexpr int64_t kCount = 60000;
const char* const kOptions = "TensorOptions options = {}, Generator& generator = default_generator())";

OpCase row(std::string name, std::string parameters, std::string formula) {
  OpCase op = row_of("Random", std::move(name), parameters, std::move(formula), tolerance::rounded);
  op.differentiable = false;
  op.dtypes = {DType::f64};
  return op;
}

struct Expected {
  double lo, hi, mean, deviation;
};

// Checks the bounds, the mean within five standard errors, and the standard deviation within 3 %.
std::string moments(const Tensor& y, const Expected& e) {
  const std::vector<double> v = y.to_vector<double>();
  double sum = 0, squares = 0;
  for (double x : v) {
    if (!(x >= e.lo && x <= e.hi)) return text("value ", x, " is outside of [", e.lo, ", ", e.hi, ']');
    sum += x;
    squares += x * x;
  }
  if (v.size() < kCount) return {};
  const double n = static_cast<double>(v.size()), mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
  if (std::abs(mean - e.mean) > 5 * e.deviation / std::sqrt(n))
    return text("the mean is ", mean, ", expected ", e.mean);
  if (std::abs(deviation - e.deviation) > 0.03 * e.deviation)
    return text("the deviation is ", deviation, ", expected ", e.deviation);
  return {};
}

using Fill = std::function<Tensor(const Dims&, TensorOptions, Generator&)>;

OpCase fill_row(std::string name, std::string parameters, std::string formula, const Expected& e, Fill fill) {
  OpCase op = row(name, "(const Dims& shape, " + parameters + kOptions, formula);
  for (const Dims& shape : {Dims{}, Dims{1}, Dims{0, 3}, Dims{2, 3, 5}, Dims{3, kCount / 3}})
    for (DType dtype : {DType::f64, DType::f32, DType::bf16})
      op.add_random(
            text(shape, ' ', dtype),
            [=] {
              Generator g{.seed = 11, .offset = 5};
              return fill(shape, options_of(dtype), g);
            },
            [=](const Tensor& y) {
              if (y.shape() != shape || y.dtype() != dtype) return text("the result is ", y.dtype(), ' ', y.shape());
              Generator g{.seed = 11, .offset = 5};
              const std::vector<double> wide = fill(shape, options_of(DType::f64), g).to_vector<double>(),
                                        v = y.to_vector<double>();
              const double half = epsilon(dtype) / 2 * (1 + 1e-3);  // half an ulp, with a margin
              for (size_t i = 0; i < v.size(); ++i)
                if (std::abs(v[i] - wide[i]) > half * std::abs(wide[i]))
                  return text(dtype, " value ", v[i], " is not ", wide[i], " rounded");
              return moments(y, e);
            })
          .large = shape.rank == 2 && shape[0] == 3;
  op.refuse({"-2", "[3, -2]"}, [=] { fill({3, -2}, {}, default_generator()); });
  if (op.name != "bernoulli") op.refuse({"i64"}, [=] { fill({2}, {DType::i64}, default_generator()); });
  return op;
}

OpCase randint_row() {
  OpCase op = row(
      "randint",
      "(int64_t lo, int64_t hi, const Dims& shape, Device device = kCpu, Generator& generator = default_generator())",
      "integers in [lo, hi), each as likely");
  for (const Dims& shape : {Dims{}, Dims{0}, Dims{7}, Dims{3, kCount / 3}})
    op.add_random(
          text(shape),
          [=] {
            Generator g{.seed = 3};
            return randint(-3, 4, shape, test_device(), g);
          },
          [=](const Tensor& y) {
            return y.dtype() == DType::i64 ? moments(y, {-3, 3, 0, 2}) : text("dtype ", y.dtype());
          })
        .large = shape.rank == 2;
  op.refuse({"3"}, [] { randint(3, 3, {2}); });
  op.refuse({"[5, 2)"}, [] { randint(5, 2, {2}); });
  op.refuse({"-2"}, [] { randint(0, 3, {-2}); });
  return op;
}

OpCase randperm_row() {
  OpCase op = row("randperm", "(int64_t n, Device device = kCpu, Generator& generator = default_generator())",
                  "0 .. n - 1 in random order");
  for (int64_t n : {0, 1, 5, 30000})
    op.add_random(
          text(n),
          [=] {
            Generator g{.seed = 3};
            return randperm(n, test_device(), g);
          },
          [=](const Tensor& y) {
            std::vector<int64_t> v = y.to_vector<int64_t>();
            const bool moved = n < 5 || !std::is_sorted(v.begin(), v.end());
            std::sort(v.begin(), v.end());
            for (int64_t i = 0; i < n; ++i)
              if (v[i] != i) return text("position ", i, " is missing");
            return moved ? std::string() : "the order is not random";
          })
        .large = n == 30000;
  op.refuse({"-1"}, [] { randperm(-1); });
  return op;
}

OpCase dropout_row() {
  OpCase op = row("dropout", "(x, double p, bool training = true, Generator& generator = default_generator())",
                  "0 with probability p, else x/(1 - p); x where not training");
  op.differentiable = true;
  op.dtypes = {DType::f64, DType::f32, DType::bf16};
  for (const Dims& shape : shapes_and_large())
    for (double p : {0.0, 0.25, 0.5})
      for (bool training : {true, false}) {
        if (!training && p != 0.5) continue;
        const auto apply = [=](const Tensor& x) {
          Generator g{.seed = 17};
          return dropout(x, p, training, g);
        };
        op.add(text("p ", p, training ? "" : " evaluation"), {op.draw.uniform(shape, 1, 2)}, apply, [=](Array y) {
            const std::vector<double> mask = apply(ones(shape, options_of(DType::f64))).to_vector<double>();
            double kept = 0;
            for (size_t i = 0; i < y.v.size(); ++i)
              y.v[i] *= mask[i] != 0 ? (training ? 1 / (1 - p) : 1) : 0, kept += mask[i] != 0;
            const double n = static_cast<double>(y.size()), share = training ? 1 - p : 1;
            check(n < 1000 || std::abs(kept - share * n) <= 5 * std::sqrt(share * (1 - share) * n), "dropout kept ",
                  kept, " of ", n);
            return y;
          }).large = shape == kLarge;
      }
  op.refuse({"1"}, [] { dropout(reals({2}), 1); });
  op.refuse({"-0.5"}, [] { dropout(reals({2}), -0.5); });
  op.refuse({"i64"}, [] { dropout(integers({2}), 0.5); });
  return op;
}

OpCase multinomial_row() {
  OpCase op = row("multinomial",
                  "(weights, int64_t count, bool replacement = false, Generator& generator = default_generator())",
                  "positions drawn with probability proportional to the weights (i64)");
  const auto add = [&](const std::string& label, std::vector<double> weights, int64_t rows, int64_t count,
                       bool replacement) -> Sample& {
    const int64_t n = static_cast<int64_t>(weights.size());
    return op.add_random(
        label,
        [=] {
          std::vector<double> all;
          for (int64_t r = 0; r < rows; ++r) all.insert(all.end(), weights.begin(), weights.end());
          Generator g{.seed = 23};
          return multinomial(on_test_device(all, {rows, n}), count, replacement, g);
        },
        [=](const Tensor& y) {
          if (y.shape() != Dims{rows, count} || y.dtype() != DType::i64)
            return text("the result is ", y.dtype(), ' ', y.shape());
          const std::vector<int64_t> v = y.to_vector<int64_t>();
          std::vector<double> first(weights.size());
          double total = 0;
          for (double w : weights) total += w;
          for (int64_t r = 0; r < rows; ++r) {
            std::set<int64_t> seen;
            for (int64_t c = 0; c < count; ++c) {
              const int64_t at = v[r * count + c];
              if (at < 0 || at >= n || weights[at] == 0) return text("position ", at, " has no weight");
              if (!replacement && !seen.insert(at).second) return text("position ", at, " is drawn twice");
            }
            ++first[v[r * count]];
          }
          for (int64_t j = 0; j < n && rows >= 10000; ++j) {
            const double p = weights[j] / total, m = static_cast<double>(rows);
            if (std::abs(first[j] - p * m) > 5 * std::sqrt(p * (1 - p) * m))
              return text("position ", j, " came first ", first[j], " times of ", m);
          }
          return std::string();
        });
  };
  for (bool replacement : {false, true}) {
    const char* label = replacement ? " replaced" : "";
    add(text("small", label), {1, 0, 2, 3}, 2, 3, replacement);
    add(text("one", label), {0.5}, 3, 1, replacement);
    add(text("frequencies", label), {1, 0, 2, 5}, 20000, 2, replacement).large = true;
  }
  op.refuse({"-1"}, [] { multinomial(on_test_device(tensor({1.0, -1.0})), 1); });
  op.refuse({"2", "1"}, [] { multinomial(on_test_device(tensor({1.0, 0.0})), 2); });
  op.refuse({"5 draws", "4 weights"}, [] { multinomial(on_test_device(tensor({1.0, 2.0, 0.0, 5.0})), 5); });
  op.refuse({"3 positive weights", "4"}, [] { multinomial(on_test_device(tensor({1.0, 2.0, 0.0, 5.0})), 4); });
  op.refuse({"0 positive"}, [] { multinomial(on_test_device(tensor({0.0, 0.0})), 1, true); });
  op.refuse({"nan"}, [] { multinomial(on_test_device(tensor({1.0, std::nan("")})), 1, true); });
  op.refuse({"i64"}, [] { multinomial(integers({2}), 1); });
  return op;
}

}  // namespace

std::vector<OpCase> random_cases() {
  std::vector<OpCase> all;
  all.push_back(fill_row("rand", "", "uniform on [0, 1)", {0, 1, 0.5, std::sqrt(1 / 12.0)}, rand));
  all.push_back(fill_row("uniform", "double lo, double hi, ", "uniform on [lo, hi)", {-2, 4, 1, std::sqrt(3.0)},
                         [](const Dims& s, TensorOptions o, Generator& g) { return uniform(s, -2, 4, o, g); }));
  all.back().refuse({"[1, 0)"}, [] { uniform({2}, 1, 0); });
  all.back().refuse({"[3, 3)"}, [] { uniform({2}, 3, 3); });
  all.push_back(fill_row("randn", "", "normal, mean 0, variance 1", {-8.6, 8.6, 0, 1}, randn));
  {
    OpCase op = row("randn_like", "(x, Generator& generator = default_generator())", "randn() of x's shape and dtype");
    for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Dims shape = {2, 3, 5000};
      op.add_random(
            text(dtype),
            [=] {
              Generator g{.seed = 3};
              return randn_like(zeros(shape, options_of(dtype)), g);
            },
            [=](const Tensor& y) {
              Generator g{.seed = 3};
              const bool same = y.dtype() == dtype && y.shape() == shape &&
                                y.to_vector<double>() == randn(shape, options_of(dtype), g).to_vector<double>();
              return std::string(same ? "" : "the result is another");
            })
          .large = true;
    }
    op.refuses = false;
    all.push_back(std::move(op));
  }
  all.push_back(fill_row("exponential", "", "exponential with rate 1", {0, 36.8, 1, 1}, exponential));
  // A normal distribution with mean 1 and deviation 2, truncated to [-1, 3], one deviation on each side: its deviation
  // is 2 sqrt(1 - 2 phi(1) / (2 Phi(1) - 1)).
  all.push_back(
      fill_row("truncated_normal", "double mean, double deviation, double lo, double hi, ",
               "normal conditioned on [lo, hi]", {-1, 3, 1, 2 * 0.5395600},
               [](const Dims& s, TensorOptions o, Generator& g) { return truncated_normal(s, 1, 2, -1, 3, o, g); }));
  all.back().refuse({"0"}, [] { truncated_normal({2}, 0, 0, -1, 1); });
  all.back().refuse({"-1"}, [] { truncated_normal({2}, 0, -1, -2, 2); });
  all.back().refuse({"[5, 6]", "0.001"}, [] { truncated_normal({2}, 0, 1, 5, 6); });
  all.back().refuse({"no bf16 lies in [1.001, 1.003]"},
                    [] { truncated_normal({2}, 1, 1e-3, 1.001, 1.003, {DType::bf16}); });

  all.push_back(fill_row("bernoulli", "double p, ", "1 with probability p, else 0", {0, 1, 0.3, std::sqrt(0.21)},
                         [](const Dims& s, TensorOptions o, Generator& g) { return bernoulli(s, 0.3, o, g); }));
  all.back().refuse({"1.5"}, [] { bernoulli({2}, 1.5); });
  all.push_back(randint_row());
  all.push_back(randperm_row());
  all.push_back(dropout_row());
  all.push_back(multinomial_row());
  return all;
}

}  // namespace isonorm::test
