// Layouts without graph: which results share storage, which are copies, and that nothing is recorded. The tests of the
// recording functions of autograd (tests/op_cases/shape.cpp) cover the values for all layouts and dtypes.
#include "core/view.h"

#include <numeric>

#include "autograd/engine.h"
#include "core/kernels/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

// A leaf with the elements 0, 1, 2, ...
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
  for (const Tensor& y :
       {detached::clone(x), detached::contiguous(across), detached::to(x, DType::f32), detached::reshape(across, {6}),
        detached::reduce(kernels::ReduceOp::sum, x, 0b10, {2}, "sum"), detached::sum_to(x, {3}, "add")}) {
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
