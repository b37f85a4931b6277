// Tensors made from numbers of every C++ type, converted back, and over the caller's memory. tests/refused has the
// calls that must not compile.
#include <array>
#include <limits>

#include "core/tensor.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

template <class T> void goes_in_and_out(DType dtype) {
  const std::vector<T> values{T(0), T(1), T(100), std::numeric_limits<T>::max() > T(1e6) ? T(1e6) : T(99)};
  for (const Tensor& x :
       {from_vector(values, {4}), tensor(values), tensor({values[0], values[1], values[2], values[3]})}) {
    CHECK(x.dtype() == dtype);
    CHECK(x.shape() == Dims{4});
    CHECK(x.to_vector<double>() == std::vector<double>(values.begin(), values.end()));
    CHECK(x.to_vector<T>() == values);
  }
}

}  // namespace

TEST_CASE("numbers of every type become elements, and elements numbers of every type") {
  goes_in_and_out<float>(DType::f32);
  goes_in_and_out<double>(DType::f64);
  goes_in_and_out<long double>(DType::f64);
  goes_in_and_out<uint8_t>(DType::u8);
  goes_in_and_out<int8_t>(DType::i64);
  goes_in_and_out<char>(DType::i64);
  goes_in_and_out<int16_t>(DType::i64);
  goes_in_and_out<uint16_t>(DType::i64);
  goes_in_and_out<int>(DType::i64);
  goes_in_and_out<unsigned>(DType::i64);
  goes_in_and_out<long>(DType::i64);
  goes_in_and_out<long long>(DType::i64);
  goes_in_and_out<size_t>(DType::i64);

  const std::vector<bool> bits{true, false, true};
  for (const Tensor& x : {from_vector(bits, {3}), tensor(bits)}) {
    CHECK(x.dtype() == DType::u8);
    CHECK(x.to_vector<uint8_t>() == std::vector<uint8_t>{1, 0, 1});
    CHECK(x.to_vector<bool>() == bits);
  }
  CHECK(tensor({0.25, 0., -2.}).to_vector<bool>() == bits);  // every number but 0 is true
  CHECK(tensor({1.75, -1.75}).to_vector<int>() == std::vector<int>{1, -1});
}

TEST_CASE("a number that a type does not hold is refused") {
  CHECK(tensor(std::vector<size_t>{INT64_MAX}).to_vector<int64_t>() == std::vector<int64_t>{INT64_MAX});
  const std::string beyond = "tensor: 9223372036854775808 is beyond the largest int64_t";
  const std::vector<size_t> most{size_t{1} << 63};
  CHECK_THROWS_WITH(tensor(most), beyond);
  CHECK_THROWS_WITH(from_vector(most, {1}), beyond);
  CHECK_THROWS_WITH(tensor({size_t{1} << 63}), beyond);
  CHECK_THROWS_WITH(tensor({-1}).to_vector<size_t>(), "to_vector: -1 does not fit an unsigned integer of 64 bits");
  CHECK_THROWS_WITH(tensor({128}).to_vector<int8_t>(), "to_vector: 128 does not fit a signed integer of 8 bits");
  CHECK_THROWS_WITH(tensor({-129.}).to_vector<int8_t>(), "to_vector: -129 does not fit a signed integer of 8 bits");
  CHECK_THROWS_WITH(tensor({NAN}).item<int>(), "to_vector: nan does not fit into i64");
  CHECK_THROWS_WITH(tensor({0x1p63}).item<int64_t>(), "to_vector: 9.22337204e+18 does not fit into i64");
  CHECK(tensor({-0x1p63}).item<int64_t>() == INT64_MIN);
  CHECK(tensor({-128, 127}).to_vector<int8_t>() == std::vector<int8_t>{-128, 127});
}

TEST_CASE("nested containers are tensors") {
  const auto is = [](const Tensor& x, DType dtype, const Dims& shape, const std::vector<double>& values) {
    CHECK(x.dtype() == dtype);
    CHECK(x.shape() == shape);
    CHECK(x.to_vector<double>() == values);
  };
  const std::vector<std::vector<float>> rows{{1, 2, 3}, {4, 5, 6}};
  is(tensor(rows), DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  is(tensor({rows[1], rows[0]}), DType::f32, {2, 3}, {4, 5, 6, 1, 2, 3});
  is(tensor({rows, rows}), DType::f32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  is(tensor(std::vector<std::array<int, 2>>{{1, 2}}), DType::i64, {1, 2}, {1, 2});
  is(tensor(std::vector<std::vector<bool>>{{true}, {false}}), DType::u8, {2, 1}, {1, 0});
  is(tensor(std::vector<std::vector<std::vector<std::vector<double>>>>{{{{1}, {2}}}}), DType::f64, {1, 1, 2, 1},
     {1, 2});
  is(tensor(std::vector<std::vector<float>>{}), DType::f32, {0, 0}, {});
  CHECK_THROWS_WITH(tensor(std::vector<std::vector<int>>{{1, 2}, {3}}),
                    "tensor: lists of 2 and of 1 entries beside each other");
}

TEST_CASE("from_blob reads and writes memory of the caller") {
  std::vector<float> memory{0, 1, 2, 3, 4, 5, 6, 7};
  const Tensor x = from_blob(memory.data(), {2, 4});
  CHECK(x.is_contiguous());
  CHECK(x.data<float>() == memory.data());
  memory[3] = 30;
  CHECK(x.to_vector<float>() == memory);
  fill(x, 7);
  CHECK(memory == std::vector<float>(8, 7));

  std::vector<uint8_t> picture{1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0};  // [2, 2, 3], rows of 8 bytes
  const std::vector<uint8_t> pixels{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
      upside_down{7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6};
  CHECK(from_blob(picture.data(), {2, 2, 3}, {8, 3, 1}).to_vector<uint8_t>() == pixels);
  CHECK(from_blob(picture.data() + 8, {2, 2, 3}, {-8, 3, 1}).to_vector<uint8_t>() == upside_down);
  CHECK(from_blob(static_cast<float*>(nullptr), {0, 3}).numel() == 0);

  CHECK_THROWS_WITH(from_blob(static_cast<float*>(nullptr), {2}), "from_blob: the pointer is null, the shape [2]");
  CHECK_THROWS_WITH(from_blob(memory.data(), {2, 2}, {1}), "from_blob: shape [2, 2] and strides [1] differ in rank");
  CHECK_THROWS_WITH(from_blob(memory.data(), {2, 3}, {INT64_MAX, INT64_MAX}),
                    Contains("from_blob: ") && Contains("passes the largest size"));
  CHECK_THROWS_WITH(from_blob(memory.data(), {-1}), Contains("from_blob: size -1 is negative"));
  CHECK_THROWS_WITH(from_blob(reinterpret_cast<float*>(picture.data() + 1), {1}),
                    "from_blob: the address of f32 elements is not a multiple of 4");
}

TEST_CASE("the deleter of from_blob runs once, when the last view is gone") {
  float memory[4] = {1, 2, 3, 4};
  std::vector<void*> deleted;
  const auto deleter = [&](void* p) { deleted.push_back(p); };
  std::weak_ptr<Storage> watched;
  {
    Tensor view;
    {
      const Tensor x = from_blob(memory, {2, 2}, {2, 1}, deleter);
      watched = x.impl().storage;
      view = as_strided(x, {2}, {1}, x.impl().offset);
    }
    CHECK(deleted.empty());
    CHECK(view.data<float>() == memory);
  }
  CHECK(deleted == std::vector<void*>{memory});
  CHECK(watched.expired());

  CHECK_THROWS(from_blob(memory, {-1}, deleter));
  CHECK(deleted == std::vector<void*>{memory, memory});
  CHECK(from_blob(memory, {4}, [](float* p) { p[0] = 9; }).size(0) == 4);
  CHECK(memory[0] == 9);
}

TEST_CASE("tensor() of a number has no dimensions") {
  CHECK(tensor(0.5).shape() == Dims{});
  CHECK(tensor(0.5).item() == 0.5);
  CHECK(tensor(0.5).dtype() == DType::f64);
  CHECK(tensor(0.5f).dtype() == DType::f32);
  CHECK(tensor(3).dtype() == DType::i64);
  CHECK(tensor(true).dtype() == DType::u8);
  CHECK_THROWS_AS(tensor(~uint64_t{0}), Error);
}
