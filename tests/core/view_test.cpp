// Layouts without graph: what is shared, what is copied, and that nothing is recorded. Values over all layouts and
// dtypes are tested with the functions of autograd that record these (tests/op_cases/shape.cpp).
#include "core/view.h"

#include <numeric>

#include "autograd/engine.h"
#include "core/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::StartsWith;

namespace {

// 0, 1, 2, ... as a leaf.
Tensor counted(const Dims& shape) {
  std::vector<double> v(static_cast<size_t>(numel(shape)));
  std::iota(v.begin(), v.end(), 0.0);
  return require_grad(from_vector(v, shape));
}

bool shares(const Tensor& a, const Tensor& b) { return a.impl().storage == b.impl().storage; }

}  // namespace

TEST_CASE("views of a leaf share its storage and take no gradient") {
  const Tensor x = counted({2, 3, 4});
  for (const Tensor& y :
       {detached::contiguous(x), detached::to(x, DType::f64), detached::reshape(x, {2, 3, 4}),
        detached::reshape(x, {6, -1}), detached::view(x, {24}), detached::permute(x, {0, 1, 2}),
        detached::transpose(x, 0, -1), detached::expand(x, {2, 3, 4}), detached::expand(x, {5, -1, -1, -1}),
        detached::slice(x, 1, -2, 9), detached::narrow(x, 0, 1, 1)}) {
    INFO(text(y.shape(), " with strides ", y.strides()));
    CHECK(shares(x, y));
    CHECK_FALSE(requires_grad(y));
  }
  CHECK(requires_grad(x));
}

TEST_CASE("copies of a leaf take no gradient") {
  const Tensor x = counted({2, 3}), across = detached::transpose(x, 0, 1);
  for (const Tensor& y : {detached::clone(x), detached::contiguous(across), detached::to(x, DType::f32),
                          detached::reshape(across, {6})}) {
    INFO(text(y.shape()));
    CHECK_FALSE(shares(x, y));
    CHECK(y.is_contiguous());
    CHECK_FALSE(requires_grad(y));
  }
  CHECK(detached::reshape(across, {6}).to_vector<double>() == std::vector<double>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("what needs no change and has no graph is given back") {
  const Tensor x = detach(counted({2, 3}));
  for (const Tensor& y : {detached::contiguous(x), detached::to(x, DType::f64), detached::reshape(x, {-1, 3}),
                          detached::view(x, {2, 3}), detached::expand(x, {2, 3})})
    CHECK(y.handle() == x.handle());
}

TEST_CASE("an undefined tensor stays undefined") {
  CHECK_FALSE(detached::contiguous({}).defined());
  CHECK_FALSE(detached::to({}, DType::f32).defined());
  CHECK_THROWS(detached::reshape({}, {1}));
}

TEST_CASE("a layout that does not exist is refused by name") {
  const Tensor x = counted({2, 3});
  CHECK_THROWS_WITH(detached::reshape(x, {4}), StartsWith("reshape: "));
  CHECK_THROWS_WITH(detached::view(detached::transpose(x, 0, 1), {6}), StartsWith("view: "));
  CHECK_THROWS_WITH(detached::permute(x, {1, 1}), StartsWith("permute: dimension 1 is given twice"));
  CHECK_THROWS_WITH(detached::transpose(x, 0, 2), StartsWith("transpose: "));
  CHECK_THROWS_WITH(detached::expand(x, {3, 3}), StartsWith("expand: "));
  CHECK_THROWS_WITH(detached::slice(x, 0, 0, 2, 0), StartsWith("slice: "));
  CHECK_THROWS_WITH(detached::narrow(x, 1, 2, 2), StartsWith("narrow: "));
}

TEST_CASE("a sum over dimensions apart is that of all elements between") {
  const Tensor x = counted({2, 3, 4});
  const Tensor y = detached::reduce(kernels::ReduceOp::sum, x, 0b101, {3}, "sum");
  // At i: the sum over a and b of 12 a + 4 i + b.
  CHECK(y.to_vector<double>() == std::vector<double>{60, 92, 124});
  CHECK_FALSE(requires_grad(y));
  const Tensor top = detached::reduce(kernels::ReduceOp::max, detached::transpose(x, 0, 2), 0b110, {4, 1, 1}, "amax");
  CHECK(top.shape() == Dims{4, 1, 1});
  CHECK(top.to_vector<double>() == std::vector<double>{20, 21, 22, 23});
}

TEST_CASE("sum_to sums what broadcasting stretched") {
  const Tensor x = counted({2, 3, 4});
  CHECK(detached::sum_to(x, {4}, "add").to_vector<double>() == std::vector<double>{60, 66, 72, 78});
  CHECK(detached::sum_to(x, {2, 1, 1}, "add").to_vector<double>() == std::vector<double>{66, 210});
  CHECK(detached::sum_to(x, {1, 3, 1}, "add").shape() == Dims{1, 3, 1});
  CHECK(detached::sum_to(x, {}, "add").item() == 276);
  CHECK(detached::sum_to(counted({5, 0}), {0}, "add").shape() == Dims{0});
  CHECK(detached::sum_to(counted({0, 2}), {2}, "add").to_vector<double>() == std::vector<double>{0, 0});
}
