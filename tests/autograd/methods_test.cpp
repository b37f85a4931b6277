// Methods and operators of Tensor: nested lists, indices, assignment, changes in place; methods equal the free
// functions.
#include "autograd/methods.h"

#include "tests/autograd/room.h"

using test::thrown;
using Values = std::vector<double>;

namespace {

// [[0, 1, 2, ...], ...]
Tensor counting(const Dims& shape, DType dtype = DType::f64) {
  return reshape(arange(0, static_cast<double>(numel(shape)), 1, {dtype}), shape);
}

bool share(const Tensor& a, const Tensor& b) { return a.impl().storage == b.impl().storage; }

void check_equal(const Tensor& x, const Dims& shape, const Values& values) {
  CHECK(x.shape() == shape);
  CHECK(x.to_vector<double>() == values);
}

}  // namespace

TEST_CASE("nested lists are tensors of up to three dimensions") {
  check_equal(tensor({1., 2.}), {2}, {1, 2});
  check_equal(tensor({{1., 2., 3.}, {4., 5., 6.}}), {2, 3}, {1, 2, 3, 4, 5, 6});
  check_equal(tensor({{{1, 2}}, {{3, 4}}, {{5, 6}}}), {3, 1, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(tensor({{1.}}).dtype() == DType::f64);
  CHECK(tensor({{1.f}}).dtype() == DType::f32);
  CHECK(tensor({{1}}).dtype() == DType::i64);
  CHECK(tensor({true, false}).dtype() == DType::u8);
  CHECK(tensor<uint8_t>({7}).dtype() == DType::u8);
  for (const std::string& ragged : {thrown([] {
                                      tensor({{1., 2.}, {3.}});
                                    }),
                                    thrown([] {
                                      tensor({{{1., 2.}}, {{3.}}});
                                    })})
    CHECK_THAT(ragged, Contains("tensor: lists of 2 and of 1 entries"));
  CHECK_THAT(thrown([] { tensor({{{1.}, {2.}}, {{3.}}}); }), Contains("lists of 2 and of 1 entries"));
}

TEST_CASE("methods are the free functions") {
  const Tensor x = tensor({{1., -2., 3.}, {4., 5., -6.}});
  const auto same = [](const Tensor& a, const Tensor& b) {
    CHECK(a.dtype() == b.dtype());
    check_equal(a, b.shape(), b.to_vector<double>());
  };
  same(x.sum(), sum(x));
  same(x.sum({}, true), sum(x, {}, true));
  same(x.sum(0), sum(x, {0}));
  same(x.sum({0}, true), sum(x, {0}, true));
  same(x.sum({0, -1}), sum(x, {0, 1}));
  same(x.mean(-1), mean(x, {1}));
  same(x.amax(1), amax(x, {1}));
  same(x.amin(0, true), amin(x, {0}, true));
  same(x.var(1, 0), var(x, {1}, 0));
  same(x.norm(0), norm(x, {0}));
  same(x.argmax(), argmax(x));
  same(x.argmax(0, true), argmax(x, 0, true));
  same(x.softmax(), softmax(x));
  same(x.softmax(0), softmax(x, 0));
  same(x.reshape({3, -1}), reshape(x, {3, 2}));
  same(x.view({6}), view(x, {6}));
  same(x.flatten(), flatten(x));
  same(x.transpose(), transpose(x, 0, 1));
  same(x.permute({1, 0}), permute(x, {1, 0}));
  same(x.unsqueeze(1), unsqueeze(x, 1));
  same(x.unsqueeze(1).squeeze(1), x);
  same(x.unsqueeze(0).expand({2, -1, -1}), expand(unsqueeze(x, 0), {2, 2, 3}));
  same(x.transpose().contiguous(), contiguous(transpose(x, 0, 1)));
  same(x.to(DType::i64), x.to(DType::i64));
  same(x.to(kCpu), x);
  same(x.matmul(x.transpose()), matmul(x, transpose(x, 0, 1)));
  same(x.pow(2), pow(x, 2));
  same(x.clamp(-1, 2), clamp(x, -1, 2));
  same(x.abs(), abs(x));
  same(x.exp(), exp(x));
  same(x.abs().log(), log(abs(x)));
  same(x.abs().sqrt(), sqrt(abs(x)));
  same(x.square(), square(x));
  same(x.relu(), relu(x));
  same(x.sigmoid(), sigmoid(x));
  same(x.tanh(), tanh(x));
  CHECK_FALSE(share(x.clone(), x));
  CHECK(x.transpose().clone().is_contiguous());
  CHECK(cuda(1) == Device{DeviceKind::cuda, 1});

  const Tensor w = tensor({3., 4.}).require_grad();
  CHECK(w.requires_grad());
  CHECK_FALSE(w.detach().requires_grad());
  CHECK_FALSE(tensor({1.}).requires_grad());
  (w * w).sum().backward();
  check_equal(w.grad(), {2}, {6, 8});
  w.clone().backward(tensor({10., 20.}));
  check_equal(w.grad(), {2}, {16, 28});
}

TEST_CASE("indices are views") {
  const Tensor x = counting({2, 3, 4});  // x[i, j, k] = 12 i + 4 j + k
  check_equal(x[1][2], {4}, {20, 21, 22, 23});
  check_equal(x[-1](0, -1), {}, {15});
  check_equal(x(0, Slice(1, 3)), {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
  check_equal(x(0, 1, Slice(None, None, 2)), {2}, {4, 6});
  check_equal(x(0, Slice(-2, None), 0), {2}, {4, 8});
  check_equal(x(Ellipsis, 1), {2, 3}, {1, 5, 9, 13, 17, 21});
  check_equal(x(1, Ellipsis, Slice(0, 1)), {3, 1}, {12, 16, 20});
  check_equal(x(None, 1, 2, None), {1, 1, 4}, {20, 21, 22, 23});
  check_equal(x(Ellipsis), {2, 3, 4}, x.to_vector<double>());
  for (const Tensor& view : {Tensor(x[1]), Tensor(x(0, Slice(1, 3), Ellipsis, None))}) CHECK(share(view, x));

  auto row = x(0, 1);
  check_equal(row + 1, {4}, {5, 6, 7, 8});
  CHECK(row.sum().item() == 22);
  CHECK_THAT(thrown([&] { x[2]; }), Contains("index 2") && Contains("[2, 3, 4]"));
  CHECK_THAT(thrown([&] { x(0, 0, 0, 0); }), Contains("index: 4 indices") && Contains("[2, 3, 4]"));
  CHECK_THAT(thrown([&] { x(Ellipsis, Ellipsis); }), Contains("Ellipsis is given 2 times"));
  CHECK_THAT(thrown([&] { x[Slice(0, 2, -1)]; }), Contains("step -1"));
}

TEST_CASE("positions and masks as indices") {
  const Tensor x = counting({2, 3, 4});
  check_equal(x[tensor({1, 0, -1})], {3, 3, 4}, cat({x[1], x[0], x[1]}, 0).to_vector<double>());
  check_equal(x(Slice(), tensor({{2, 0}}), 1), {2, 1, 2}, {9, 1, 21, 13});
  check_equal(x(tensor({0, 1}), tensor({2, 1}), tensor({3, 0})), {2}, {11, 16});
  check_equal(x(tensor({{0}, {1}}), tensor({2, 1})), {2, 2, 4},
              {8, 9, 10, 11, 4, 5, 6, 7, 20, 21, 22, 23, 16, 17, 18, 19});
  check_equal(x(tensor({0, 1}), Slice(), tensor({3, 0})), {2, 3}, {3, 7, 11, 12, 16, 20});  // chosen dimensions first
  check_equal(x[x > 21], {2}, {22, 23});
  check_equal(x[tensor({false, true})], {1, 3, 4}, x[1].to_vector<double>());
  check_equal(x(1, tensor({true, false, true}), Slice(0, 2)), {2, 2}, {12, 13, 20, 21});
  check_equal(x(Ellipsis, x[0] > 10), {2, 1}, {11, 23});
  check_equal(x[x < 0], {0}, {});
  check_equal(counting({3}, DType::i64)[full({}, 2, {DType::i64})], {}, {2});

  CHECK_THAT(thrown([&] { x[tensor({2})]; }), Contains("position 2") && Contains("size 2"));
  CHECK_THAT(thrown([&] { x[tensor({-3})]; }), Contains("position -3"));
  CHECK_THAT(thrown([&] { x[tensor({true})]; }), Contains("mask of shape [1]") && Contains("[2]"));
  CHECK_THAT(thrown([&] { x[tensor({1.})]; }), Contains("f64") && Contains("i64"));
  CHECK_THAT(thrown([&] { x(tensor({0, 1}), tensor({0, 1, 2})); }), Contains("index: "));

  const TensorsFunction reads = [](const std::vector<Tensor>& in) {
    const Tensor& t = in[0];
    return std::vector<Tensor>{t[1], t(0, Slice(1, 3), Ellipsis, None), t[tensor({1, 0, 1})], t[t > 0.1234],
                               t(tensor({0, 1}), Slice(), tensor({3, 0}))};
  };
  const auto r = gradcheck(reads, {counting({2, 3, 4}) * 0.37 - 4});
  INFO(r.message());
  CHECK(r.ok);
}

// Shapes and values of PyTorch 2.15.
TEST_CASE(
    "a tensor of i64 without dimensions is a number as an index: it drops the dimension, and the result is a view") {
  const Tensor x = counting({2, 3, 4}), one = full({}, 1, {DType::i64}), last = full({}, -1, {DType::i64});
  const Tensor ids = tensor<int64_t>({3, 0});
  CHECK((x[one].shape() == Dims{3, 4} && share(x[one], x)));
  CHECK(x(Slice(), last).shape() == Dims{2, 4});
  check_equal(x(one, Slice(), ids), {3, 2},
              {15, 12, 19, 16, 23, 20});  // only ids choose: their dimension stays in place
  check_equal(x(0, one, ids), {2}, {7, 4});
  CHECK(x(one, Slice(), tensor<int64_t>({{1}, {2}})).shape() == Dims{3, 2, 1});
  x(one, last, 0) = 99;
  CHECK(x(1, 2, 0).item() == 99);
  CHECK_THAT(thrown([&] { x[full({}, 2, {DType::i64})]; }), Contains("2") && Contains("[2, 3, 4]"));
  CHECK_THAT(thrown([&] { x[full({}, 1, {DType::u8})]; }), Contains("index: a tensor u8 []"));
}

TEST_CASE("an index that was computed below zero is refused") {
  const std::vector<float> none;
  const Tensor x = tensor({1.0, 2.0});
  CHECK_THAT(thrown([&] { x[none.size() - 1]; }), Contains("index: position 18446744073709551615 is beyond"));
  CHECK_THAT(thrown([&] { x(0, Slice(), uint64_t{1} << 63); }), Contains("index: position 9223372036854775808"));
  check_equal(x[size_t{1}], {}, {2});
  check_equal(x[-1], {}, {2});
}

TEST_CASE("assignment through an index") {
  const auto with = [](const std::function<void(const Tensor&)>& change) {
    const Tensor x = counting({2, 3});
    change(x);
    return x.to_vector<double>();
  };
  CHECK(with([](const Tensor& x) { x[0] = 7; }) == Values{7, 7, 7, 3, 4, 5});
  CHECK(with([](const Tensor& x) { x(1, Slice(1, 3)) = tensor({8., 9.}); }) == Values{0, 1, 2, 3, 8, 9});
  CHECK(with([](const Tensor& x) { x[0] = x[1]; }) == Values{3, 4, 5, 3, 4, 5});
  CHECK(with([](const Tensor& x) { x(Ellipsis, Slice(1, 3)) = x(Ellipsis, Slice(0, 2)); }) == Values{0, 0, 1, 3, 3, 4});
  CHECK(with([](const Tensor& x) { x[x > 2] = -1; }) == Values{0, 1, 2, -1, -1, -1});
  CHECK(with([](const Tensor& x) { x[x > 3] = tensor({10, 20}); }) == Values{0, 1, 2, 3, 10, 20});
  CHECK(with([](const Tensor& x) {
          x(Slice(), tensor({-1, 0})) = tensor({{1.f}, {2.f}});
        }) == Values{1, 1, 1, 2, 4, 2});
  CHECK(with([](const Tensor& x) { x(0, tensor({1, 1})) = tensor({5., 6.}); }) == Values{0, 6, 2, 3, 4, 5});
  CHECK(with([](const Tensor& x) { x(tensor({0, 1}), tensor({2, 0})) = 9; }) == Values{0, 1, 9, 9, 4, 5});
  CHECK(with([](const Tensor& x) { x[x > 9] = 1; }) == Values{0, 1, 2, 3, 4, 5});
  CHECK(with([](const Tensor& x) { x.transpose()(tensor({2})) = 9; }) == Values{0, 1, 9, 3, 4, 9});
  CHECK(with([](const Tensor& x) { x[0] += 10, x[1] *= tensor({1., 2., 3.}); }) == Values{10, 11, 12, 3, 8, 15});
  CHECK(with([](const Tensor& x) { x[x < 2] -= 1, x(Ellipsis, 2) /= 2; }) == Values{-1, 0, 1, 3, 4, 2.5});
  const Tensor cube = counting({2, 2, 2});
  cube(tensor({1, 0}), Slice(), tensor({0, 1})) = tensor({{10., 20.}, {30., 40.}});
  check_equal(cube, {2, 2, 2}, {0, 30, 2, 40, 10, 5, 20, 7});
  const Tensor bytes = zeros({3}, {DType::u8});
  bytes[1] = 255;
  check_equal(bytes, {3}, {0, 255, 0});
  CHECK_THAT(thrown([&] { bytes[1] = 300; }), Contains("300") && Contains("u8"));

  const Tensor x = counting({2, 3}), w = counting({3}).require_grad();
  CHECK_THAT(thrown([&] { x[0] = tensor({1., 2.}); }), Contains("index: shapes [3] and [2]"));
  CHECK_THAT(thrown([&] { x[0] = w; }), Contains("the value") && Contains("takes a gradient"));
  CHECK_THAT(thrown([&] { w[0] = 1; }), Contains("the tensor") && Contains("takes a gradient"));
  CHECK_THAT(thrown([&] { w[tensor({0})] = 1; }), Contains("the tensor") && Contains("takes a gradient"));
  const Tensor y = square(w).sum();
  {
    const NoGrad no_grad;
    w[0] = 5;
  }
  check_equal(w, {3}, {5, 1, 2});
  CHECK_THROWS(y.backward());  // it needs the values that w held before
}

TEST_CASE("changes in place, and a new tensor if they would be recorded") {
  Tensor x = counting({2, 2});
  const Tensor alias = x, view = x[1];
  x += 1;
  x *= tensor({1., 10.});
  x -= alias;
  x += counting({2, 2});
  x /= 2;
  check_equal(alias, {2, 2}, {0, 0.5, 1, 1.5});
  check_equal(view, {2}, {1, 1.5});
  x += x.transpose();
  check_equal(alias, {2, 2}, {0, 1.5, 1.5, 3});
  CHECK_THAT(thrown([&] {
               x += counting({3, 2, 2});
             }),
             Contains("+=: ") && Contains("[3, 2, 2]") && Contains("write x = x + ..."));
  Tensor whole = counting({2}, DType::i64);
  whole += 3;
  whole -= 1.0;
  check_equal(whole, {2}, {2, 3});
  CHECK_THAT(thrown([&] { whole /= 2; }), Contains("/=: ") && Contains("f32") && Contains("i64"));

  Tensor w = tensor({3., 4.}).require_grad();
  CHECK_THAT(thrown([&] { w += 1; }), Contains("+=: ") && Contains("leaf"));
  using View = Tensor (*)(const Tensor&);
  for (const View view :
       {View([](const Tensor& t) { return t.view({2}); }), View([](const Tensor& t) {
          return t.view({2, 1});
        }),
        View([](const Tensor& t) -> Tensor { return t[0]; }),
        View([](const Tensor& t) -> Tensor { return t(Slice(0, 1)); }), View([](const Tensor& t) {
          return t.expand({3, 2});
        }),
        View([](const Tensor& t) { return t.unsqueeze(0).transpose(0, 1).flatten(); }), View([](const Tensor& t) {
          return split(t, {1, 1}, 0)[1];
        }),
        View([](const Tensor& t) -> Tensor { return t(None, 1); })}) {
    Tensor v = view(w);
    CHECK_THAT(thrown([&] { v += 1; }), Contains("+=: ") && Contains("a view of one"));
    CHECK_THAT(thrown([&] { v -= v; }), Contains("-=: ") && Contains("a view of one"));
    CHECK_THAT(thrown([&] { v *= 2; }), Contains("*=: ") && Contains("a view of one"));
    CHECK_THAT(thrown([&] { v /= w.sum(); }), Contains("/=: ") && Contains("a view of one"));
    check_equal(w, {2}, {3, 4});
    Tensor product = view(w * 1);  // a view of a result becomes another tensor
    product += 1;
    CHECK(product.requires_grad());
  }
  Tensor y = w * 1;
  const Tensor before = y;
  y *= y;
  y += 1;
  y -= w;
  y /= 2;
  check_equal(before, {2}, {3, 4});
  check_equal(y, {2}, {3.5, 6.5});
  y.sum().backward();
  check_equal(w.grad(), {2}, {2.5, 3.5});  // (2 w - 1) / 2
  Tensor free = tensor({1., 1.});
  free *= w;
  CHECK(free.requires_grad());
  const Tensor z = square(w).sum();
  {
    const NoGrad no_grad;
    w -= 1;
  }
  check_equal(w, {2}, {2, 3});
  CHECK(w.requires_grad());
  CHECK_THROWS(z.backward());
}

TEST_CASE("an integer tensor takes whole numbers alone") {
  Tensor x = tensor<int64_t>({1, 2, 3});
  x[0] = 7.0;
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{7, 2, 3});
  CHECK_THROWS_WITH(x[0] = 1.5, "x[...] = 1.5: the dtype is i64");
  const Tensor ids = tensor<int64_t>({0, 2});
  CHECK_THROWS_WITH(x[ids] = full({}, NAN), Contains("a value of f32 for a tensor of i64"));
  CHECK_THROWS_WITH(x[1] /= 2.0, Contains("a value of f32 for a tensor of i64"));
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{7, 2, 3});
}

TEST_CASE("operators compare, combine masks and compute with integers") {
  const Tensor a = tensor({1., 2., 3.}), b = tensor({3., 2., 1.});
  check_equal(a < b, {3}, {1, 0, 0});
  check_equal(a <= b, {3}, {1, 1, 0});
  check_equal(a > b, {3}, {0, 0, 1});
  check_equal(a >= b, {3}, {0, 1, 1});
  check_equal(a == b, {3}, {0, 1, 0});
  check_equal(a != b, {3}, {1, 0, 1});
  check_equal(a < 2, {3}, {1, 0, 0});
  check_equal(a <= 2, {3}, {1, 1, 0});
  check_equal(a > 2, {3}, {0, 0, 1});
  check_equal(a >= 2, {3}, {0, 1, 1});
  check_equal(a == 2, {3}, {0, 1, 0});
  check_equal(a != 2, {3}, {1, 0, 1});
  check_equal(1 < a, {3}, {0, 1, 1});
  check_equal(1 <= a, {3}, {1, 1, 1});
  check_equal(3 > a, {3}, {1, 1, 0});
  check_equal(3 >= a, {3}, {1, 1, 1});
  check_equal(2 == a, {3}, {0, 1, 0});
  check_equal(2 != a, {3}, {1, 0, 1});
  check_equal((a > 1) & (a < 3), {3}, {0, 1, 0});
  check_equal((a < 2) | (a > 2), {3}, {1, 0, 1});
  check_equal(!(a > 1), {3}, {1, 0, 0});
  CHECK((a < b).dtype() == DType::u8);

  const Tensor i = tensor({7, -7}), j = tensor({3, 3});
  check_equal(i % j, {2}, {1, 2});
  check_equal(i % -3, {2}, {-2, -1});
  check_equal(i % tensor({0, -1}), {2}, {0, 0});
  check_equal(tensor({7.5, -7.5}) % 2, {2}, {1.5, 0.5});
  check_equal(i / tensor({2, 2}), {2}, {3.5, -3.5});
  check_equal(-i, {2}, {-7, 7});
  check_equal(1 - (a > 1), {3}, {1, 0, 0});
  check_equal(a * (a > 1), {3}, {0, 2, 3});
  check_equal((a > 1) * a, {3}, {0, 2, 3});
  CHECK((i + j).dtype() == DType::i64);
  CHECK((i / j).dtype() == DType::f32);
  CHECK((1 - (a > 1)).dtype() == DType::i64);
  CHECK((a * (a > 1)).dtype() == DType::f64);
  CHECK((a > 1).sum().dtype() == DType::i64);
  CHECK((a > 1).sum().item() == 2);
  const int64_t large = int64_t{1} << 53;  // neighbours are equal as doubles
  CHECK((tensor({large}) + tensor({1})).to_vector<int64_t>()[0] == large + 1);
  CHECK(tensor({large, int64_t{1}}).sum().to_vector<int64_t>()[0] == large + 1);
  CHECK_THAT(thrown([&] { a + tensor({1.f}); }), Contains("add: dtypes f64 and f32"));
  CHECK_THAT(thrown([&] { i * 0.5; }), Contains("mul: 0.5 is not a whole number"));
}
