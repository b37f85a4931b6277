// ResiDual's factor s: a second stream of s times the embeddings and branches, whose norm with eps is that of the plain
// sum with eps / s^2. Plain loops over doubles have the s, the library's connections have none.
#include "nn/residual/dual.h"

#include <cmath>

#include "autograd/ops/copy.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "core/random.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

using Row = std::vector<double>;

Row layer_norm(const Row& x, double eps) {
  const double d = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (double v : x) mean += v / d;
  for (double v : x) variance += (v - mean) * (v - mean) / d;
  Row y = x;
  for (double& v : y) v = (v - mean) / std::sqrt(variance + eps);
  return y;
}

}  // namespace

TEST_CASE("ResiDual's factor s is the last norm's eps over its square") {
  constexpr int64_t kWidth = 9, kBranches = 6;
  constexpr double kEps = 1e-7;
  manual_seed(4);
  for (const double size : {1.0, 1e-3}) {  // of embeddings and branches: eps is nothing beside their square, and much
    const auto draw = [&] { return (randn({kWidth}, {DType::f64}) * size).to_vector<double>(); };
    Row x = draw(), plain = x;
    Residual r{from_vector(x, {kWidth}), {}};
    for (int64_t i = 0; i < kBranches; ++i) {
      DualNorm connection(kWidth, {}, {.first = i == 0});
      const Row branch = draw();
      connection.join(r, from_vector(branch, {kWidth}));
      for (size_t j = 0; j < x.size(); ++j) x[j] += branch[j], plain[j] += branch[j];
      x = layer_norm(x, 1e-5);
    }
    DualEnd end(kWidth, {});
    const Row found = end.read(r).to_vector<double>();
    double most = 0;
    for (const double s : {0.05, 1.0, 4.0}) {
      Row scaled = plain;  // as the paper's code has it: s x_0 + sum of s branches
      for (double& v : scaled) v *= s;
      const Row same = layer_norm(scaled, kEps * s * s), code = layer_norm(scaled, kEps);
      for (size_t j = 0; j < x.size(); ++j) {
        INFO("size " << size << ", s " << s);
        // 6 norms in turn, each of sums of 9 terms, which enlarge rounding by the smallest deviation of a row.
        CHECK(std::abs(found[j] - (x[j] + same[j])) < 6 * 3 * 16 * 0x1p-52 * 10);
        most = std::max(most, std::abs(found[j] - (x[j] + code[j])));
      }
    }
    // What another s changes: of a row of deviation sigma at most |1 - 1/s^2| eps / (2 sigma^2) of its normalised entries, of
    // which none is above sqrt(8).
    double mean = 0, variance = 0;
    for (double v : plain) mean += v / kWidth;
    for (double v : plain) variance += (v - mean) * (v - mean) / kWidth;
    CHECK(most <= (1 / (0.05 * 0.05) - 1) * kEps / (2 * variance) * std::sqrt(8) + 1e-12);
    CHECK((most > 1e-3) == (size < 1));
  }
}
