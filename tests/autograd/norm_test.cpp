// The norms: values against their formulas in plain f64 code, gradients against finite differences, the identities
// between them.
#include "tests/support/catch.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/system/parallel.h"
#include "tests/support/norm_reference.h"
#include "tests/support/random.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::max_difference;
using test::randn;
using test::taken_entries;

namespace {

const NormSpec kSpecs[] = {{NormKind::layer, 1e-5, 1},
                           {NormKind::rms, 1e-5, 1},
                           {NormKind::rms, 1e-3, 0.3},
                           {NormKind::crms, 1e-5, 1},
                           {NormKind::crms_isometric, 1e-6, 1}};

// The formulas of normalization, one row at a time.
std::vector<double> naive(const NormSpec& spec, const std::vector<double>& x, int64_t width,
                          const std::vector<double>& gain, const std::vector<double>& bias) {
  std::vector<double> y(x.size());
  for (size_t r = 0; r < x.size(); r += width) {
    double mean = 0, sum = 0, squares = 0;
    const int64_t k = taken_entries(spec.p, width);
    for (int64_t i = 0; i < width; ++i) sum += x[r + i];
    if (spec.kind == NormKind::layer) mean = sum / width;
    for (int64_t i = 0; i < k; ++i) squares += (x[r + i] - mean) * (x[r + i] - mean);
    if (spec.kind == NormKind::crms) squares += sum * sum;
    const double divisor = spec.kind == NormKind::crms || spec.kind == NormKind::crms_isometric ? width + 1 : k;
    const double root = std::sqrt(squares / divisor + spec.eps);
    for (int64_t i = 0; i < width; ++i)
      y[r + i] = (x[r + i] - mean) / root * (gain.empty() ? 1 : gain[i]) + (bias.empty() ? 0 : bias[i]);
  }
  return y;
}

}  // namespace

namespace {

// The k that rms_norm averages: squares of 1, 3, 5, ... have the mean k, so that the first entry becomes 1 / sqrt(k).
int64_t averaged(double p, int64_t width) {
  std::vector<double> x(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) x[i] = std::sqrt(2.0 * i + 1);
  const double first = rms_norm(from_vector(x, {1, width}), {}, {}, {.eps = 0, .p = p}).to_vector<double>()[0];
  return std::llround(1 / (first * first));
}

}  // namespace

TEST_CASE("partial rms_norm averages as many entries as the decimal share says") {
  const struct {
    double p;
    int64_t width, k;
  } cases[] = {{0.07, 100, 7},
               {0.14, 200, 28},
               {0.28, 300, 84},
               {0.07, 300, 21},
               {0.14, 50, 7},
               {0.28, 25, 7},
               {0.55, 100, 55},
               {0.56, 100, 56},
               {0.57, 100, 57},
               {0.58, 100, 58},
               {0.29, 100, 29},
               {0.1, 10, 1},
               {0.1, 30, 3},
               {0.2, 15, 3},
               {0.3, 10, 3},
               {0.6, 5, 3},
               {0.7, 10, 7},
               {0.9, 10, 9},
               {0.0625, 768, 48},
               {0.0625, 64, 4},
               {0.06, 64, 4},
               {0.3, 64, 20},
               {0.4, 7, 3},
               {0.25, 10, 3},
               {0.999, 1000, 999},
               {0.9999, 1000, 1000},
               {0.0701, 100, 8},
               {0.070000001, 100, 8},
               {0.07000000000001, 100, 8},
               {0.0699, 100, 7},
               {0.5, 2, 1},
               {0.5, 3, 2},
               {0.51, 2, 2},
               {1, 1, 1},
               {1, 100, 100},
               {0.99, 1, 1},
               {1e-9, 100, 1},
               {1e-300, 100, 1},
               {5e-324, 3, 1},
               {0.001, 1000, 1},
               {0.0011, 1000, 2},
               {1.0 / 3, 3, 1},
               {2.0 / 3, 3, 2},
               {0.34, 3, 2},
               // The nearest float of a decimal share.
               {0.07F, 100, 7},
               {0.14F, 200, 28},
               {0.28F, 300, 84},
               {0.1F, 1000, 100},
               {0.3F, 10, 3},
               {0.0701F, 100, 8},
               {0.7F, 1000, 700},
               {0.699F, 1000, 699},
               {0.9F, 4096, 3687}};
  for (const auto& c : cases) {
    INFO(c.p << " of " << c.width);
    CHECK(averaged(c.p, c.width) == c.k);
  }
  // Every share of three decimals, read as a program reads it, against whole numbers.
  int64_t wrong = 0;
  for (int64_t thousandths = 1; thousandths < 1000; ++thousandths) {
    const double p = std::stod("0." + std::to_string(1000 + thousandths).substr(1));
    const float narrow = static_cast<float>(p);
    for (int64_t width : {1, 2, 3, 10, 25, 50, 64, 100, 125, 200, 300, 512, 768, 1000, 1024, 3000, 4096, 12288}) {
      const int64_t k = (thousandths * width + 999) / 1000;
      wrong += norm_entries({NormKind::rms, 1e-5, p}, width) != k;
      wrong += norm_entries({NormKind::rms, 1e-5, narrow}, width) != k;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("norms have the values of their formulas, at every width and dtype") {
  for (const NormSpec& spec : kSpecs)
    for (DType dtype : {DType::f64, DType::f32, DType::bf16})
      for (int64_t width : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 191, 300, 1000}) {
        const Tensor x = randn({5, width}, 1, 0.7, 2, dtype), gain = randn({width}, 2, 1, 0.3, dtype),
                     bias = randn({width}, 3, 0, 1, dtype);
        const auto plain = normalize(x, spec).to_vector<double>(),
                   affine = normalize(x, spec, gain, bias).to_vector<double>();
        const auto xs = x.to_vector<double>();
        const auto expected = naive(spec, xs, width, {}, {}),
                   expected_affine = naive(spec, xs, width, gain.to_vector<double>(), bias.to_vector<double>());
        INFO(name_of(spec.kind) << " p " << spec.p << " width " << width << ' ' << name_of(dtype));
        // Sums of `width` terms, then a few roundings of a result of that size; the output's own rounding for bf16.
        const double eps =
            epsilon(acc_dtype(dtype)) * (4 + std::sqrt(double(width))) + (dtype == DType::bf16 ? 0x1p-8 : 0);
        for (size_t i = 0; i < xs.size(); ++i) {
          REQUIRE(std::abs(plain[i] - expected[i]) <= eps * (1 + std::abs(expected[i])));
          REQUIRE(std::abs(affine[i] - expected_affine[i]) <=
                  3 * eps * (1 + std::abs(expected_affine[i]) + std::abs(expected[i])));
        }
      }
}

TEST_CASE("a fixed CRMSNorm row: (1, 2) stands for (1, 2, -3)") {
  const auto y = crms_norm(tensor({1.0, 2.0}), {}, {}, {.eps = 0}).to_vector<double>();
  CHECK(y[0] == Approx(1 / 2.160246899469287));
  CHECK(y[1] == Approx(2 / 2.160246899469287));
}

TEST_CASE("norm gradients agree with finite differences") {
  for (const NormSpec& spec : kSpecs)
    for (int64_t width : {2, 5, 9, 34})
      for (double shift : {0.0, 50.0}) {
        const Tensor x = randn({2, 3, width}, 4, shift), gain = randn({width}, 5, 1, 0.5), bias = randn({width}, 6);
        const auto both = [&](const std::vector<Tensor>& v) { return normalize(v[0], spec, v[1], v[2]); };
        const auto plain = [&](const std::vector<Tensor>& v) { return normalize(v[0], spec); };
        const auto gain_only = [&](const std::vector<Tensor>& v) { return normalize(v[0], spec, v[1]); };
        const auto bias_only = [&](const std::vector<Tensor>& v) { return normalize(v[0], spec, {}, v[1]); };
        INFO(name_of(spec.kind) << " p " << spec.p << " width " << width << " shift " << shift);
        for (const GradcheckResult& r : {gradcheck(both, {x, gain, bias}), gradcheck(plain, {x}),
                                         gradcheck(gain_only, {x, gain}), gradcheck(bias_only, {x, bias})}) {
          INFO(r.message());
          CHECK(r.ok);
        }
      }
}

TEST_CASE("norm gradients do not depend on rows, layout or what else is wanted") {
  // Many rows: several blocks of the sums for gain and bias. The reference is the sum over rows taken one by one.
  const Tensor x = randn({1000, 37}, 7), dy = randn({1000, 37}, 8), gain = randn({37}, 9, 1), bias = randn({37}, 10);
  for (const NormSpec& spec : kSpecs) {
    Tensor a = detach(x), g = detach(gain), b = detach(bias);
    require_grad(a), require_grad(g), require_grad(b);
    const auto whole = grad(normalize(a, spec, g, b), {a, g, b}, dy);
    Tensor dgain, dbias, columns = contiguous(transpose(x, 0, 1));
    for (int64_t r = 0; r < 1000; r += 100) {
      const auto part = grad(normalize(slice(transpose(require_grad(columns), 0, 1), 0, r, r + 100), spec, g, b),
                             {columns, g, b}, slice(dy, 0, r, r + 100));
      dgain = r ? add(dgain, part[1]) : part[1];
      dbias = r ? add(dbias, part[2]) : part[2];
      CHECK(max_difference(slice(transpose(part[0], 0, 1), 0, r, r + 100), slice(whole[0], 0, r, r + 100)) == 0);
    }
    CHECK(max_difference(dgain, whole[1]) < 1e-12 * 1000);
    CHECK(max_difference(dbias, whole[2]) < 1e-12 * 1000);
    CHECK(max_difference(grad(normalize(a, spec, g, b), {g}, dy)[0], whole[1]) == 0);
    CHECK(max_difference(grad(normalize(detach(a), spec, detach(g), b), {b}, dy)[0], whole[2]) == 0);
  }
}

TEST_CASE("the bits of norms do not depend on the number of threads") {
  const int before = num_threads();
  for (const NormSpec& spec : kSpecs)
    for (DType dtype : {DType::f32, DType::f64}) {
      std::vector<std::vector<double>> seen;
      for (int threads : {1, 2, 4}) {
        set_num_threads(threads);
        Tensor x = randn({700, 129}, 11, 1, 3, dtype), gain = randn({129}, 12, 1, 1, dtype),
               bias = randn({129}, 13, 0, 1, dtype);
        require_grad(x), require_grad(gain), require_grad(bias);
        const Tensor y = normalize(x, spec, gain, bias);
        const auto d = grad(y, {x, gain, bias}, randn({700, 129}, 14, 0, 1, dtype));
        std::vector<double> all = y.to_vector<double>();
        for (const Tensor& t : d) {
          const auto v = t.to_vector<double>();
          all.insert(all.end(), v.begin(), v.end());
        }
        seen.push_back(all);
      }
      CHECK(seen[0] == seen[1]);
      CHECK(seen[0] == seen[2]);
    }
  set_num_threads(before);
}

TEST_CASE("on zero-mean rows the norms are one, and so are their gradients") {
  const int64_t d = 24;
  Tensor full = randn({6, d}, 15);
  full = detach(sub(full, mean(full, {-1}, true)));
  Tensor head = contiguous(slice(full, 1, 0, d - 1));
  const Tensor ln = layer_norm(full), rms = rms_norm(full), crms = crms_norm(head);
  CHECK(max_difference(ln, rms) < 1e-14);
  CHECK(max_difference(slice(rms, 1, 0, d - 1), crms) < 1e-14);
  // Vector-Jacobian products: crms's of c is D^T of layer_norm's of (c, 0), D = [I; -1^T].
  const Tensor c = randn({6, d - 1}, 16);
  const Tensor crms_gradient = grad(crms_norm(require_grad(head)), {head}, c)[0];
  const Tensor ln_gradient = grad(layer_norm(require_grad(full)), {full}, detach(pad(c, {{0, 1}})))[0];
  CHECK(max_difference(sub(slice(ln_gradient, 1, 0, d - 1), slice(ln_gradient, 1, d - 1, d)), crms_gradient) < 1e-14);
}

TEST_CASE("rows far from zero, rows of zeros, rows of width 1, no rows") {
  // Two passes: in f32 with mean 1e4 and deviation 8 the error stays near eps mean / deviation; E[x^2] - mean^2 would
  // lose everything.
  const Tensor far = randn({4, 768}, 17, 1e4, 8, DType::f32);
  const auto exact = naive({NormKind::layer, 1e-5, 1}, far.to_vector<double>(), 768, {}, {});
  const auto y = layer_norm(far).to_vector<double>();
  double error = 0;
  for (size_t i = 0; i < y.size(); ++i) error = std::max(error, std::abs(y[i] - exact[i]));
  CHECK(error < 4 * 0x1p-23 * 1e4 / 8);

  Tensor zeros = empty({2, 5});
  fill(zeros, 0);
  for (const NormSpec& spec : kSpecs) {
    const Tensor out = normalize(require_grad(zeros), spec);
    CHECK(sum(abs(out)).item() == 0);
    CHECK(std::isfinite(sum(grad(out, {zeros}, randn({2, 5}, 18, 0, 1, DType::f32))[0]).item()));
    CHECK(normalize(empty({0, 5}), spec).shape() == Dims{0, 5});
  }
  Tensor one = randn({4, 1}, 19), gain = tensor({3.0}), bias = tensor({0.5});
  require_grad(one), require_grad(gain);
  const Tensor out = layer_norm(one, gain, bias);
  CHECK(out.to_vector<double>() == std::vector<double>(4, 0.5));
  const auto g = grad(out, {one, gain}, randn({4, 1}, 20));
  CHECK(sum(abs(g[0])).item() == 0);
  CHECK(g[1].item() == 0);
  Tensor none = require_grad(empty({0, 3}, {DType::f64})), gain3 = require_grad(randn({3}, 21));
  CHECK(grad(layer_norm(none, gain3), {none, gain3}, empty({0, 3}, {DType::f64}))[1].to_vector<double>() ==
        std::vector<double>(3, 0.0));
}

TEST_CASE("norms refuse what does not fit") {
  const Tensor x = randn({2, 4}, 22);
  CHECK_THROWS_WITH(layer_norm(x, randn({5}, 1)), Contains("layer_norm: gain [5] does not fit input [2, 4]"));
  CHECK_THROWS_WITH(rms_norm(x, {}, randn({2, 4}, 1)), Contains("rms_norm: bias [2, 4]"));
  CHECK_THROWS_WITH(crms_norm(x, randn({4}, 1, 0, 1, DType::f32)), Contains("gain is f32, the input f64"));
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, {.eps = -1}), Contains("eps is -1"));
  CHECK_THROWS_WITH(rms_norm(x, {}, {}, {.p = 0}), Contains("p is 0"));
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, {.p = 0.5}), Contains("only rms_norm has a partial form"));
  CHECK_THROWS_WITH(layer_norm(empty({2}, {DType::i64})), Contains("dtype is i64"));
  CHECK_THROWS_WITH(layer_norm(empty({})), Contains("rank 0"));
}
