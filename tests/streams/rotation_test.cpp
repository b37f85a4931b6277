// Rotations of a stream: orthogonal up to rounding, with the promised properties, and files that are refused.
#include "streams/rotation.h"

#include "io/npy.h"
#include "io/safetensors.h"
#include "tests/equivalence/room.h"
#include "tests/support/temp_folder.h"

using namespace isonorm::streams;

namespace {

// The largest entry of |Q^T Q - I|, by explicit sums.
double off(const Tensor& q, bool rows = false) {
  const std::vector<double> v = q.to_vector<double>();
  const int64_t d = q.size(0);
  double worst = 0;
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j < d; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < d; ++k) sum += rows ? v[i * d + k] * v[j * d + k] : v[k * d + i] * v[k * d + j];
      worst = std::max(worst, std::abs(sum - (i == j)));
    }
  return worst;
}

double rounding(int64_t d, DType dtype = DType::f64) { return 2 * std::sqrt(static_cast<double>(d)) * epsilon(dtype); }

}  // namespace

TEST_CASE("a Hadamard rotation has entries +-1/sqrt(d), signs first: Q^T is H diag(s)/sqrt(d)") {
  for (int64_t d : {1, 2, 4, 12, 20, 24, 32, 40, 96, 200}) {
    INFO(d);
    const Tensor q = hadamard_rotation(d, 5);
    const std::vector<double> v = q.to_vector<double>(), other = hadamard_rotation(d, 6).to_vector<double>();
    for (double x : v) CHECK(std::abs(x) == 1 / std::sqrt(static_cast<double>(d)));
    CHECK(off(q) <= rounding(d));
    CHECK(off(q, true) <= rounding(d));
    CHECK(hadamard_rotation(d, 5).to_vector<double>() == v);
    // Another seed changes the signs of whole rows of Q.
    for (int64_t i = 0; i < d; ++i)
      for (int64_t j = 1; j < d; ++j) CHECK(v[i * d] * other[i * d] * v[i * d + j] * other[i * d + j] > 0);
    if (d >= 12) CHECK(v != other);
  }
  // Up to signs this is Sylvester's matrix: the sign of entry (i, j) is the parity of the ones in i & j.
  const std::vector<double> v = hadamard_rotation(8, 1).to_vector<double>();
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) CHECK((v[i * 8 + j] == v[i * 8]) == (__builtin_popcount(i & j) % 2 == 0));
  for (int64_t d : {int64_t{-4}, int64_t{0}, int64_t{3}, int64_t{28}, int64_t{767}})
    CHECK_THROWS_WITH(hadamard_rotation(d, 1), Contains(text("order ", d)) && Contains("haar takes any width"));
}

TEST_CASE("a rotation by Haar's measure is orthogonal to rounding of f64, and prefers no direction") {
  for (int64_t d : {1, 2, 7, 65}) CHECK(off(haar_rotation(d, 3)) <= rounding(d));
  // In a random direction an entry of a unit vector has mean 0 and mean square 1/d: checked over 400 matrices to 5
  // standard errors. The signs of the diagonal, which are fixed in QR without Mezzadri's rule, are balanced.
  const int64_t d = 4, count = 400;
  double mean = 0, square = 0, positive = 0;
  for (int64_t seed = 0; seed < count; ++seed) {
    const std::vector<double> v = haar_rotation(d, static_cast<uint64_t>(seed)).to_vector<double>();
    mean += v[1] / count, square += v[1] * v[1] / count, positive += v[5] > 0 ? 1.0 / count : 0;
  }
  CHECK(std::abs(mean) < 5 * std::sqrt(0.25 / count));
  CHECK(std::abs(square - 0.25) < 5 * std::sqrt(0.0625 / count));  // variance 2 (d - 1) / (d^2 (d + 2)) = 1/16
  CHECK(std::abs(positive - 0.5) < 5 * std::sqrt(0.25 / count));
  const Tensor q = haar_rotation(9, 2);
  CHECK(haar_rotation(9, 2).to_vector<double>() == q.to_vector<double>());
  CHECK(haar_rotation(9, 1).to_vector<double>() != q.to_vector<double>());
}

TEST_CASE("a file's rotation is its matrix, orthogonal up to rounding in f64; other matrices are refused") {
  const TempFolder f;
  const int64_t d = 12;
  const Tensor q = haar_rotation(d, 8);
  const auto with = [&](int64_t at, double value) {
    std::vector<double> v = q.to_vector<double>();
    v[at] = value;
    return from_vector(v, {d, d});
  };
  for (DType dtype : {DType::f64, DType::f32}) {
    save_npy(f / "q.npy", q.to(dtype)), save_safetensors(f / "q", [&] {
      TensorMap one;
      one.add("basis", q.to(dtype));
      return one;
    }());
    for (const char* name : {"q.npy", "q"}) {
      const Tensor read = load_rotation(f / name, d);
      CHECK(off(read) <= rounding(d));
      CHECK(amax(abs(read - q)).item() <= epsilon(dtype) * std::sqrt(static_cast<double>(d)));
    }
  }
  const struct {
    Tensor matrix;
    const char* says;
  } wrong[] = {{with(3, q.to_vector<double>()[3] + 1e-12), "is not orthogonal: Q^T Q - I has an entry of "},
               {with(3, NAN), "is not orthogonal"},
               {with(3, INFINITY), "is not orthogonal"},
               {zeros({d, d}, {DType::f64}), "is not orthogonal"},
               {q * (1 + 1e-10), "is not orthogonal"},
               {haar_rotation(d - 1, 1), "shape [11, 11], the stream stores rows of 12"},
               {reshape(q, {1, d, d}), "shape [1, 12, 12]"},
               {zeros({500, 500}, {DType::f64}), "more than a matrix [12, 12] takes"},
               {eye(d, -1, {DType::i64}), "dtype i64, expected f32 or f64"}};
  for (const auto& [matrix, says] : wrong) {
    save_npy(f / "wrong.npy", matrix);
    CHECK_THROWS_WITH(load_rotation(f / "wrong.npy", d), Contains(says) && Contains("wrong.npy"));
  }
  TensorMap two;
  two.add("a", q), two.add("b", q);
  save_safetensors(f / "two", two);
  CHECK_THROWS_WITH(load_rotation(f / "two", d), Contains("2 tensors, expected the matrix alone"));
  CHECK_THROWS_AS(load_rotation(f / "none", d), Error);
  write_text(f / "no matrix.npy", "x");  // the reader's message names the file once
  CHECK_THROWS_WITH(load_rotation(f / "no matrix.npy", d), f / "no matrix.npy: npy: 1 bytes, shorter than a header");
}
