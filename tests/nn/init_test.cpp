// Initial weights: their bounds and spreads by the sizes of the weight.
#include "nn/init.h"

#include <cmath>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::nn;

namespace {

const Dims kShape = {100, 400};  // [out, in]

double largest(const Tensor& x) { return amax(abs(x)).item(); }
// Of 40000 entries: a standard error is 0.0035 of a normal distribution's.
double spread(const Tensor& x) { return std::sqrt(var(x).item()); }

}  // namespace

TEST_CASE("Xavier's bound and spread follow from inputs and outputs, Kaiming's from the inputs") {
  manual_seed(1);
  const double bound = 2 * std::sqrt(6.0 / 500);
  const Tensor uniform = init::xavier_uniform(kShape, 2);
  CHECK(largest(uniform) <= bound);
  CHECK(largest(uniform) > 0.999 * bound);
  CHECK(spread(init::xavier_normal(kShape, 2)) == Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.02));
  CHECK(spread(init::kaiming_normal(kShape)) == Approx(std::sqrt(2.0 / 400)).epsilon(0.02));
  CHECK_THROWS_WITH(init::xavier_normal({3}), Catch::Matchers::Contains("[3] is not [out, in]"));
}

TEST_CASE("a truncated normal initialisation ends at two deviations") {
  manual_seed(2);
  const Tensor x = init::truncated_normal(kShape, 0.02);
  CHECK(largest(x) <= 0.04);
  CHECK(largest(x) > 0.0399);
  CHECK(spread(x) == Approx(0.02 * 0.8796).epsilon(0.02));  // sqrt(1 - 2 a phi(a) / (2 Phi(a) - 1)), a = 2
}
