// The norms beyond their rows in tests/op_cases: partial shares, sums over many rows, identities between norms, edges.
#include "autograd/fused/group_norm.h"
#include "tests/autograd/room.h"

using test::max_difference;
using test::randn;

namespace {

const NormSpec kSpecs[] = {{NormKind::layer, 1e-5, 1},
                           {NormKind::rms, 1e-5, 1},
                           {NormKind::rms, 1e-3, 0.3},
                           {NormKind::crms, 1e-5, 1},
                           {NormKind::crms_isometric, 1e-6, 1}};

// The k that rms_norm averages: the first k squares are 1, 3, 5, ... with the mean k, so the first entry becomes 1 /
// sqrt(k).
int64_t averaged(double p, int64_t width) {
  std::vector<double> x(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) x[i] = std::sqrt(2.0 * i + 1);
  const double first = rms_norm(from_vector(x, {1, width}), {}, {}, {.eps = 0, .p = p}).to_vector<double>()[0];
  return std::llround(1 / (first * first));
}

}  // namespace

TEST_CASE("partial rms_norm averages the number of entries of the decimal share") {
  struct Case {
    double p;
    int64_t width, k;
  };
  const std::vector<Case> plain = {{0.07, 100, 7},  {0.14, 200, 28}, {0.28, 300, 84}, {0.07, 300, 21}, {0.14, 50, 7},
                                   {0.28, 25, 7},   {0.55, 100, 55}, {0.56, 100, 56}, {0.57, 100, 57}, {0.58, 100, 58},
                                   {0.29, 100, 29}, {0.1, 10, 1},    {0.1, 30, 3},    {0.2, 15, 3},    {0.3, 10, 3},
                                   {0.6, 5, 3},     {0.7, 10, 7},    {0.9, 10, 9},    {0.0625, 64, 4}, {0.06, 64, 4},
                                   {0.3, 64, 20},   {0.4, 7, 3},     {0.25, 10, 3},   {0.5, 2, 1},     {0.5, 3, 2},
                                   {0.51, 2, 2},    {1, 1, 1},       {1, 100, 100},   {0.99, 1, 1},    {1e-9, 100, 1},
                                   {5e-324, 3, 1},  {1.0 / 3, 3, 1}, {2.0 / 3, 3, 2}, {0.34, 3, 2}};
  // Shares with many digits; the nearest float of a decimal share.
  const std::vector<Case> others = {
      {0.0625, 768, 48},     {0.999, 1000, 999},         {0.9999, 1000, 1000}, {0.0701, 100, 8},
      {0.070000001, 100, 8}, {0.07000000000001, 100, 8}, {0.0699, 100, 7},     {1e-300, 100, 1},
      {0.001, 1000, 1},      {0.0011, 1000, 2},          {0.07F, 100, 7},      {0.14F, 200, 28},
      {0.28F, 300, 84},      {0.1F, 1000, 100},          {0.3F, 10, 3},        {0.0701F, 100, 8},
      {0.7F, 1000, 700},     {0.699F, 1000, 699},        {0.9F, 4096, 3687}};
  for (const auto& cases : {plain, others})
    for (const Case& c : cases) {
      INFO(c.p << " of " << c.width);
      CHECK(averaged(c.p, c.width) == c.k);
    }
  // Every share with three decimals, read as a program reads it, against whole numbers.
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

TEST_CASE("norm gradients do not depend on rows, layout or what else is wanted") {
  // Many rows: several blocks of the sums for gain and bias. The reference adds up slices of 100 rows.
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

TEST_CASE("on zero-mean rows the norms are one, and so are their gradients") {
  const int64_t d = 24;
  Tensor full = randn({6, d}, 15);
  full = detach(sub(full, mean(full, {-1}, true)));
  Tensor head = contiguous(slice(full, 1, 0, d - 1));
  const Tensor ln = layer_norm(full), rms = rms_norm(full), crms = crms_norm(head);
  CHECK(max_difference(ln, rms) < 1e-14);
  CHECK(max_difference(slice(rms, 1, 0, d - 1), crms) < 1e-14);
  // Vector-Jacobian products: crms_norm's of c is D^T times layer_norm's of (c, 0), with D = [I; -1^T].
  const Tensor c = randn({6, d - 1}, 16);
  const Tensor crms_gradient = grad(crms_norm(require_grad(head)), {head}, c)[0];
  const Tensor ln_gradient = grad(layer_norm(require_grad(full)), {full}, detach(pad(c, {{0, 1}})))[0];
  CHECK(max_difference(sub(slice(ln_gradient, 1, 0, d - 1), slice(ln_gradient, 1, d - 1, d)), crms_gradient) < 1e-14);
}

TEST_CASE("rows far from zero, rows of zeros, rows of width 1, no rows") {
  // Two passes: in f32 with mean 1e4 and deviation 8 the error stays near eps mean / deviation; E[x^2] - mean^2 would
  // lose everything.
  const Tensor far = randn({4, 768}, 17, 1e4, 8, DType::f32);
  const Tensor wide = far.to(DType::f64), centred = wide - mean(wide, {-1}, true);
  const Tensor exact = centred * rsqrt(mean(square(centred), {-1}, true) + 1e-5);
  CHECK(max_difference(layer_norm(far), exact) < 4 * 0x1p-23 * 1e4 / 8);

  const Tensor flat = require_grad(zeros({2, 5}));
  for (const NormSpec& spec : kSpecs) {
    const Tensor out = normalize(flat, spec);
    CHECK(sum(abs(out)).item() == 0);
    CHECK(std::isfinite(sum(grad(out, {flat}, randn({2, 5}, 18, 0, 1, DType::f32))[0]).item()));
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

// The mean of a row is rounded in units of the row, so normalized rows have a mean, here 5e-12. A gradient computed as
// h - mean(h) - x^ mean(h x^) keeps it: its rows sum to 6e-13 (n = 8) and 7e-12 (n = 768) of their largest entry. The
// sums here may only be rounding: n entries with four roundings each, which add up like sqrt(n).
TEST_CASE("rows far from zero: a layer_norm gradient sums to 0 over a row") {
  for (const auto& [dtype, spread] : {std::pair(DType::f64, 1e-3), {DType::f32, 0.1}})
    for (const int64_t n : {8, 37, 768})
      for (const bool affine : {false, true}) {
        INFO(name_of(dtype) << ", width " << n << (affine ? ", affine" : ""));
        const Tensor x = require_grad(randn({5, n}, 30, 50, spread, dtype)), dy = randn({5, n}, 31, 0, 1, dtype);
        const Tensor gain = affine ? randn({n}, 32, 1, 1, dtype) : Tensor(), zero = zeros({5, n}, {dtype});
        const AddNorm added = add_norm(x, zero, {NormKind::layer}, gain);
        for (const Tensor& y : {layer_norm(x, gain), added.normed}) {
          const Tensor dx = grad(y, {x}, dy)[0].to(DType::f64);
          const double eps = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
          CHECK(amax(abs(sum(dx, {-1}))).item() < 4 * eps * std::sqrt(static_cast<double>(n)) * amax(abs(dx)).item());
        }
      }
}

// Entry i is 1e4 + sqrt(12) deviation ((2654435761 i mod 2^32) / 2^32 - 1/2), in f32. The errors of torch 2.15 on the
// CPU were measured with batch_norm on [n / 64, channels, 8, 8], which torch sums in f64. Errors of gradients are
// relative to the largest gradient. (On rows [n, channels] torch sums in f32, and its errors are up to 700 times as
// large.)
TEST_CASE("batch_norm far from zero has at most twice PyTorch's error, and near zero f32's") {
  const auto entry = [](int64_t i, double offset, double deviation) {
    const auto bits = static_cast<uint32_t>(static_cast<uint64_t>(i) * 2654435761u);
    return static_cast<float>(offset + deviation * std::sqrt(12) * (static_cast<double>(bits) * 0x1p-32 - 0.5));
  };
  struct Case {
    int64_t n, channels;
    double deviation, value, gradient;
  };
  for (const auto& [n, channels, deviation, value, gradient] : {Case{512, 1, 1, 3.72e-05, 9.48e-06},
                                                                {512, 1, 0.1, 2.46e-05, 1.01e-04},
                                                                {512, 4, 1, 8.50e-04, 9.16e-05},
                                                                {512, 4, 0.01, 3.62e-02, 9.01e-04},
                                                                {512, 64, 1, 8.95e-04, 1.34e-04},
                                                                {4096, 8, 0.1, 3.29e-03, 1.76e-04},
                                                                {99'968, 3, 1, 4.17e-04, 3.14e-06}}) {
    CAPTURE(n, channels, deviation);
    std::vector<float> x, dy;
    for (int64_t i = 0; i < n * channels; ++i) {
      x.push_back(entry(i, 1e4, deviation));
      dy.push_back(entry((n - 1 - i / channels) * channels + i % channels, 0, 1));
    }
    const Tensor narrow = require_grad(from_vector(x, {n, channels}));
    const Tensor wide = require_grad(detach(narrow).to(DType::f64)), up = from_vector(dy, {n, channels});
    const auto exact = [&](const std::vector<int>& dims) {
      const Tensor apart = wide - mean(wide, dims, true);
      return apart / sqrt(mean(square(apart), dims, true) + 1e-5);
    };
    const Tensor y = batch_norm(narrow), expected = exact({0});
    const Tensor dx = grad(y, {narrow}, up)[0], expected_dx = grad(expected, {wide}, up.to(DType::f64))[0];
    const double error = max_difference(y, expected);
    const double gradient_error = max_difference(dx, expected_dx) / amax(abs(expected_dx)).item();
    // Sums of n numbers.
    const double bound = 8 * epsilon(DType::f32) * std::sqrt(static_cast<double>(n));
    CHECK(error <= std::min(bound, 2 * value));
    CHECK(gradient_error <= std::min(bound, 2 * gradient));
    const Tensor image = reshape(narrow, {1, n, channels});
    CHECK(max_difference(group_norm(image, channels), reshape(expected, image.shape())) <= bound);
    CHECK(max_difference(group_norm(image, 1), reshape(exact({0, 1}), image.shape())) <= bound);
  }
}

TEST_CASE("group_norm gives its gain and bias gradients if the input takes none, and either one alone") {
  const Tensor x = randn({2, 3, 4}, 31), upstream = randn({2, 3, 4}, 32);
  Tensor gain = require_grad(randn({4}, 33)), bias = require_grad(randn({4}, 34)), taken = require_grad(x + 0.0);
  const auto both = grad(group_norm(taken, 2, gain, bias), {taken, gain, bias}, upstream);
  CHECK(max_difference(grad(group_norm(x, 2, gain, detach(bias)), {gain}, upstream)[0], both[1]) == 0);
  CHECK(max_difference(grad(group_norm(x, 2, detach(gain), bias), {bias}, upstream)[0], both[2]) == 0);
  CHECK(max_difference(grad(group_norm(taken, 2, detach(gain), detach(bias)), {taken}, upstream)[0], both[0]) == 0);
}

// If the sum's rounding is as large as its spread, the backward must read the same stored sum that was normalized.
TEST_CASE("add_norm in bf16 has value and gradient of the stored sum") {
  const Tensor wide = randn({2, 50}, 17, 3, 1, DType::bf16), added = randn({2, 50}, 18, 0, 1, DType::bf16);
  const AddNorm stored = add_norm(wide, added, {});
  CHECK(max_difference(stored.sum, add(wide, added)) == 0);
  CHECK(max_difference(stored.normed, reference::add_norm(wide, added, {}).normed) == 0);
  const auto row = [](const std::vector<double>& v) { return from_vector(v, {1, 4}).to(DType::bf16); };
  for (const DType gains : {DType::bf16, DType::f32}) {
    const Tensor x = require_grad(row({64, 64, 64, 64.5})), branch = row({.1, .12, .09, .11}),
                 gain = require_grad(ones({4}, {gains}));
    const AddNorm r = add_norm(x, branch, {}, gain);
    backward(sum(r.normed));
    const double root = 1 / std::sqrt(3.0);  // the deviations of 64, 64, 64, 64.5 are 1 : 1 : 1 : -3
    const Tensor expected = from_vector<double>({-root, -root, -root, 3 * root}, {1, 4});
    INFO("gain " << name_of(gains));
    CHECK(r.sum.to_vector<double>() == std::vector<double>{64, 64, 64, 64.5});
    CHECK(max_difference(r.normed, expected) <= 3 * root * 0x1p-8);
    CHECK(max_difference(gain.grad(), expected) <= 3 * root * 0x1p-8);
    // The sum of a result is constant; 64 / 0.22^2 is the effect of rounding the mean in f32.
    CHECK(max_difference(x.grad(), zeros({1, 4})) <= 4 * 0x1p-24 * 64 / (0.22 * 0.22));
  }
}
