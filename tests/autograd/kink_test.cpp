// Gradients where a function is not smooth: at ties, kinks and the zero vector, where finite differences say nothing.
#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

using Values = std::vector<double>;

// Gradient of the sum of f(x).
template <class F> Values slope(F f, const Values& x) {
  Tensor t = from_vector(x, {static_cast<int64_t>(x.size())});
  require_grad(t);
  backward(sum(f(t)));
  return gradient(t).to_vector<double>();
}

}  // namespace

TEST_CASE("ties share the gradient equally") {
  const Tensor other = tensor({2.0, 2.0, 2.0});
  CHECK(slope([&](const Tensor& x) { return maximum(x, other); }, {1, 2, 3}) == Values{0, 0.5, 1});
  CHECK(slope([&](const Tensor& x) { return minimum(other, x); }, {1, 2, 3}) == Values{1, 0.5, 0});
  CHECK(slope([](const Tensor& x) { return maximum(x, 2.0); }, {1, 2, 3}) == Values{0, 0.5, 1});
  CHECK(slope([](const Tensor& x) { return minimum(2.0, x); }, {1, 2, 3}) == Values{1, 0.5, 0});
  CHECK(slope([](const Tensor& x) { return amax(x); }, {4, 1, 4, 4, 4}) == Values{0.25, 0, 0.25, 0.25, 0.25});
  CHECK(slope([](const Tensor& x) { return amin(x); }, {1, 5, 1}) == Values{0.5, 0, 0.5});
}

TEST_CASE("at a kink the derivative is the documented one") {
  CHECK(slope([](const Tensor& x) { return abs(x); }, {-1, 0, 1}) == Values{-1, 0, 1});
  CHECK(slope([](const Tensor& x) { return relu(x); }, {-1, 0, 1}) == Values{0, 0, 1});
  CHECK(slope(
            [](const Tensor& x) {
              return l1_loss(x, tensor({0.0, 0.0, 0.0}), Reduction::sum);
            },
            {-1, 0, 1}) == Values{-1, 0, 1});
  CHECK(slope([](const Tensor& x) { return norm(x); }, {0, 0}) == Values{0, 0});
  CHECK(slope([](const Tensor& x) { return pow(x, 0.0); }, {0, 2}) == Values{0, 0});
  CHECK(slope([](const Tensor& x) { return pow(x, 2.0); }, {0, 2}) == Values{0, 4});
  CHECK(slope([](const Tensor& x) { return pow(0.0, x); }, {1, 2}) == Values{0, 0});
}
