// Integers and masks in ops: the values and dtypes that PyTorch 2 prints, and the two places where u8 differs from its
// uint8.
#include "tests/autograd/room.h"

using namespace isonorm::test;
using Values = std::vector<double>;

namespace {

void check_is(const Tensor& x, DType dtype, const Values& values) {
  CHECK(x.dtype() == dtype);
  CHECK(x.to_vector<double>() == values);
}

const Tensor& bytes() {
  static const Tensor u = tensor<uint8_t>({1, 0, 3});
  return u;
}
const Tensor& longs() {
  static const Tensor i = tensor({3, -1, 2});
  return i;
}

}  // namespace

TEST_CASE("a product of masks is a mask, for floats and as an index") {
  const Tensor x = tensor({1.5f, 2.f, 3.f}), inside = (x > 0) * (x < 2);
  check_is(inside, DType::u8, {1, 0, 0});
  check_is(x * inside, DType::f32, {1.5, 0, 0});
  check_is(x[inside], DType::f32, {1.5});
  check_is(x.sum() / (x > 1.5).sum(), DType::f32, {3.25});
  check_is(1 - bytes(), DType::i64, {0, 1, -2});  // uint8 of PyTorch: 0, 1, 254
  check_is(x * (1 - (x < 2)), DType::f32, {0, 2, 3});
}

TEST_CASE("integers keep their dtype where PyTorch's do") {
  check_is(amax(bytes()), DType::u8, {3});
  check_is(amin(longs()), DType::i64, {-1});
  check_is(argmax(bytes()), DType::i64, {2});
  check_is(argmin(longs()), DType::i64, {1});
  check_is(abs(longs()), DType::i64, {3, 1, 2});
  check_is(clamp(longs(), 0, 2), DType::i64, {2, 0, 2});
  check_is(clamp(bytes(), -3, 2), DType::u8, {1, 0, 2});
  const int64_t large = (int64_t{1} << 53) + 1;
  CHECK(clamp(tensor({large}), 0, 1e300).item<int64_t>() == large);
  check_is(relu(longs()), DType::i64, {3, 0, 2});
  check_is(sign(longs()), DType::i64, {1, -1, 1});
  check_is(square(longs()), DType::i64, {9, 1, 4});
  check_is(pow(longs(), 3), DType::i64, {27, -1, 8});
  check_is(minimum(bytes(), longs()), DType::i64, {1, -1, 2});
  check_is(masked_fill(longs(), bytes(), 7), DType::i64, {7, -1, 7});
  check_is(cumsum(bytes(), 0), DType::i64, {1, 1, 4});
  check_is(cumsum(longs(), 0), DType::i64, {3, 2, 4});
  check_is(prod(longs()), DType::i64, {-6});
  check_is(sort(longs()).values, DType::i64, {-1, 2, 3});
  check_is(sort(bytes(), -1, true).values, DType::u8, {3, 1, 0});
}

TEST_CASE("integers become f32 where PyTorch's do") {
  check_is(clamp(longs(), 0.5, 2), DType::f32, {2, 0.5, 2});
  check_is(sqrt(tensor({4, 9})), DType::f32, {2, 3});
  check_is(pow(2.0, longs()), DType::f32, {8, 0.5, 4});
  check_is(maximum(longs(), tensor({1.5f, 2.f, 3.f})), DType::f32, {3, 2, 3});
  check_is(where(bytes(), longs(), 0.5), DType::f32, {3, 0.5, 2});
  check_is(longs() > 0.5, DType::u8, {1, 0, 1});
  check_is(bytes() == 300, DType::u8, {0, 0, 0});
}

TEST_CASE("extrema of i64 are exact at the ends of its range") {
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const Tensor x = from_vector<int64_t>({most - 1, least, most, least + 1}, {4});
  CHECK(amax(x).to_vector<int64_t>()[0] == most);
  CHECK(amin(x).to_vector<int64_t>()[0] == least);
  CHECK(argmax(x).item() == 2);
  CHECK(argmin(x).item() == 1);
  CHECK(cumsum(from_vector<int64_t>({most - 1, 1}, {2}), 0).to_vector<int64_t>()[1] == most);
}

TEST_CASE("a gradient passes an integer operand") {
  const Tensor x = require_grad(tensor({1., 2., 3.}));
  backward(sum(x * longs() + x / longs() + pow(x, longs())));  // i + 1 / i + i x^(i - 1)
  const Values slopes = x.grad().to_vector<double>(), expected = {3 + 1. / 3 + 3, -1 - 1 - 0.25, 2 + 0.5 + 6};
  for (size_t i = 0; i < 3; ++i) CHECK(slopes[i] == Approx(expected[i]).epsilon(1e-14));
}

TEST_CASE("fractions combined with integers, and values out of a dtype's range, are refused") {
  CHECK_THAT(thrown([] { longs() + 0.5; }), Contains("add: 0.5 is not a whole number, the tensor is i64"));
  CHECK_THAT(thrown([] { masked_fill(bytes(), bytes(), 300); }), Contains("masked_fill: 300 does not fit u8"));
  CHECK_THAT(thrown([] { clamp(bytes(), 256, 300); }), Contains("clamp: [256, 300] holds no u8"));
  CHECK_THAT(thrown([] { mean(longs()); }), Contains("mean: dtype is i64"));
}

TEST_CASE("the methods are the functions") {
  const Tensor x = tensor({3., -1., 2.}), nan = tensor<double>({1, NAN});
  CHECK(x.argmin().item() == 1);
  CHECK(x.prod().item() == -6);
  CHECK(x.std().item() == isonorm::std(x).item());
  CHECK(x.median().item() == 2);
  check_is(x.cumsum(0), DType::f64, {3, 2, 4});
  CHECK((x > 0).any().item() == 1);
  CHECK((x > 0).all().item() == 0);
  CHECK(x.nonzero().shape() == Dims{3, 1});
  check_is(nan.isnan(), DType::u8, {0, 1});
  check_is(nan.isinf(), DType::u8, {0, 0});
  check_is(nan.isfinite(), DType::u8, {1, 0});
  check_is(x.masked_fill(x < 0, 5), DType::f64, {3, 5, 2});
  CHECK(x.equal(x.clone()));
  CHECK(x.allclose(x + 1e-9));
}
