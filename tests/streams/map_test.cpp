// The maps against dense matrices, their adjoints against inner products, their inverses against the identity.
#include "streams/stream.h"
#include "tests/equivalence/room.h"

using namespace isonorm::streams;

namespace {

constexpr int64_t kWidths[] = {2, 3, 8, 65};

struct Matrix {
  int64_t rows, columns;
  std::vector<double> v;
  double& at(int64_t r, int64_t c) { return v[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return v[static_cast<size_t>(r * columns + c)]; }
};

template <class F> Matrix made(int64_t rows, int64_t columns, F entry) {
  Matrix m{rows, columns, {}};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) m.v.push_back(entry(r, c));
  return m;
}
Matrix transposed(const Matrix& a) {
  return made(a.columns, a.rows, [&](int64_t r, int64_t c) { return a.at(c, r); });
}
Matrix product(const Matrix& a, const Matrix& b) {
  return made(a.rows, b.columns, [&](int64_t r, int64_t c) {
    double sum = 0;
    for (int64_t k = 0; k < a.columns; ++k) sum += a.at(r, k) * b.at(k, c);
    return sum;
  });
}

// The matrices: I of any size, P = I - 11^T/d, D = [I; -1^T], and Q by orthogonalizing e_0 - e_k, k = 1, 2, ...
Matrix eye(int64_t rows, int64_t columns) {
  return made(rows, columns, [](int64_t r, int64_t c) { return r == c; });
}
Matrix projection(int64_t d) {
  return made(d, d, [=](int64_t r, int64_t c) { return (r == c) - 1.0 / static_cast<double>(d); });
}
Matrix difference(int64_t d) {
  return made(d, d - 1, [=](int64_t r, int64_t c) { return (r == c) - (r == d - 1); });
}
Matrix gram_schmidt(int64_t d) {
  Matrix q = made(d, d - 1, [](int64_t, int64_t) { return 0; });
  for (int64_t k = 1; k < d; ++k) {
    std::vector<double> v(static_cast<size_t>(d));
    v[0] = 1, v[static_cast<size_t>(k)] = -1;
    for (int pass = 0; pass < 2; ++pass)  // the second pass removes what rounding left
      for (int64_t j = 0; j < k - 1; ++j) {
        double dot = 0;
        for (int64_t i = 0; i < d; ++i) dot += v[i] * q.at(i, j);
        for (int64_t i = 0; i < d; ++i) v[i] -= dot * q.at(i, j);
      }
    double square = 0;
    for (double x : v) square += x * x;
    for (int64_t i = 0; i < d; ++i) q.at(i, k - 1) = v[i] / std::sqrt(square);
  }
  return q;
}

// Another basis: the reflection that takes (1, .., 1)/sqrt(d) to the last unit vector takes the others to this one.
Tensor reflected(int64_t d) {
  const double size = std::sqrt(static_cast<double>(d)), square = 2 - 2 / size;
  std::vector<double> q;
  for (int64_t r = 0; r < d; ++r)
    for (int64_t c = 0; c < d - 1; ++c) {
      const double of_row = 1 / size - (r == d - 1), of_column = 1 / size;
      q.push_back((r == c) - 2 * of_row * of_column / square);
    }
  return from_vector(q, {d, d - 1});
}
const Basis kReflected = {"reflected", reflected};

struct Case {
  Map map;
  Matrix dense;
};

std::vector<Case> cases(int64_t d) {
  const Matrix p = projection(d), dd = difference(d), plus = product(eye(d - 1, d), p), q = gram_schmidt(d);
  const std::vector<double> values = reflected(d).to_vector<double>();
  const Matrix h = made(d, d - 1, [&](int64_t r, int64_t c) { return values[static_cast<size_t>(r * (d - 1) + c)]; });
  const Map compress = Map::compress(d), expand = Map::expand(d), isometric = Map::isometric(d),
            other = Map::isometric(d, kReflected);
  return {{Map::identity(d), eye(d, d)},
          {Map::recentre(d), p},
          {compress, plus},
          {expand, dd},
          {Map::compress_reader(d), transposed(dd)},
          {Map::expand_reader(d), transposed(plus)},
          {isometric, transposed(q)},
          {isometric.adjoint(), q},
          {other, transposed(h)},
          {other.adjoint(), h},
          {isometric * other.adjoint(), product(transposed(q), h)},
          {expand * compress, p},
          {isometric * Map::recentre(d), transposed(q)},
          {isometric * expand, product(transposed(q), dd)},
          {compress * compress.adjoint(), product(plus, transposed(plus))},
          {isometric.adjoint() * Map::compress_reader(d) * Map::expand(d) * compress,
           product(q, product(transposed(dd), p))}};
}

double tolerance(DType dtype, int64_t d) { return 16 * epsilon(dtype) * std::sqrt(static_cast<double>(d)); }

// The product of the dense matrix with x [3, size, 4] along dimension 1.
Tensor naive(const Matrix& m, const Tensor& x) {
  const std::vector<double> v = x.to_vector<double>();
  std::vector<double> y(static_cast<size_t>(3 * m.rows * 4));
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t r = 0; r < m.rows; ++r)
      for (int64_t c = 0; c < m.columns; ++c)
        for (int64_t e = 0; e < 4; ++e) y[(b * m.rows + r) * 4 + e] += m.at(r, c) * v[(b * m.columns + c) * 4 + e];
  return from_vector(y, {3, m.rows, 4});
}

double inner(const Tensor& a, const Tensor& b) { return sum(a.to(DType::f64) * b.to(DType::f64)).item(); }

}  // namespace

TEST_CASE("a map acts as its dense matrix, along any dimension") {
  manual_seed(1);
  for (int64_t d : kWidths)
    for (const auto& [map, dense] : cases(d))
      for (DType dtype : {DType::f64, DType::f32}) {
        INFO(map.name() << ", width " << d << ", " << name_of(dtype));
        CHECK(map.inputs() == dense.columns);
        CHECK(map.outputs() == dense.rows);
        const Tensor x = randn({3, dense.columns, 4}, {dtype});
        check_close(map(x, 1), naive(dense, x), tolerance(dtype, d));
        check_close(transpose(map(transpose(x, 1, 2), -1), 1, 2), naive(dense, x), tolerance(dtype, d));
        CHECK(map(x, 1).dtype() == dtype);
      }
}

TEST_CASE("a map acts on one vector as its dense matrix does, and bounds its errors by the absolute matrix") {
  Generator generator{7, 0};
  for (int64_t d : kWidths)
    for (const auto& [map, dense] : cases(d)) {
      INFO(map.name() << ", width " << d);
      const Tensor x = randn({map.inputs()}, {DType::f64}, generator);
      std::vector<double> moved = x.to_vector<double>(), bound = abs(x).to_vector<double>(), column = bound;
      map.apply(moved), map.bound_errors(bound);
      REQUIRE(moved.size() == static_cast<size_t>(dense.rows));
      double total = 0;
      for (double v : column) total += v;
      const bool product = map.name().find(" after ") != std::string::npos;
      for (int64_t r = 0; r < dense.rows; ++r) {
        double value = 0, size = 0;
        for (int64_t c = 0; c < dense.columns; ++c) {
          value += dense.at(r, c) * x.to_vector<double>()[static_cast<size_t>(c)];
          size += std::abs(dense.at(r, c)) * column[static_cast<size_t>(c)];
        }
        const double rounding = tolerance(DType::f64, d) * static_cast<double>(d) * size + 1e-15;
        CHECK(std::abs(moved[static_cast<size_t>(r)] - value) <= rounding);
        CHECK(bound[static_cast<size_t>(r)] >= size - rounding);
        if (!product) CHECK(bound[static_cast<size_t>(r)] <= size + 2 * total / static_cast<double>(d) + rounding);
      }
    }
}

TEST_CASE("<M x, y> = <x, M* y>, and the adjoint is what autodiff carries back") {
  manual_seed(2);
  for (int64_t d : kWidths)
    for (const auto& [map, dense] : cases(d))
      for (DType dtype : {DType::f64, DType::f32}) {
        INFO(map.name() << ", width " << d << ", " << name_of(dtype));
        const Tensor x = require_grad(randn({3, map.inputs(), 4}, {dtype}));
        const Tensor y = randn({3, map.outputs(), 4}, {dtype});
        const Tensor mx = map(x, 1), back = map.adjoint()(y, 1);
        const double size = std::sqrt(inner(x, x) * inner(y, y)) * static_cast<double>(d);  // |D| <= sqrt d
        CHECK(std::abs(inner(mx, y) - inner(x, back)) <= tolerance(dtype, d) * size);
        check_close(grad(mx, {x}, y)[0], back, tolerance(dtype, d));
      }
}

TEST_CASE("inverses exist where nothing is lost, and only there") {
  manual_seed(3);
  for (int64_t d : kWidths)
    for (const auto& [map, dense] : cases(d)) {
      INFO(map.name() << ", width " << d);
      const bool lossless = map.inputs() < d || map.name() == "identity";
      const bool onto = map.outputs() < d || map.name() == "identity";
      const double bound = tolerance(DType::f64, d) * static_cast<double>(d);
      if (lossless) {
        const Tensor x = randn({2, map.inputs()}, {DType::f64});
        check_close(map.left_inverse()(map(x, 1), 1), x, bound);
        check_close((map.left_inverse() * map)(x, 1), x, bound);
      } else {
        CHECK_THROWS_WITH(map.left_inverse(), Contains(map.name()) && Contains("no left inverse"));
      }
      if (onto) {
        const Tensor y = randn({2, map.outputs()}, {DType::f64});
        check_close(map(map.right_inverse()(y, 1), 1), y, bound);
      } else {
        CHECK_THROWS_WITH(map.right_inverse(), Contains(map.name()) && Contains("no right inverse"));
      }
    }
}

TEST_CASE("parameters are mapped as the stream maps them") {
  manual_seed(4);
  const int64_t d = 9;
  const Tensor w = randn({d, 4}, {DType::f64}), a = randn({5, d}, {DType::f64});
  for (const Form form : {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(form));
    const Stream stream(form, d);
    check_close(row_of(form).map(Role::writer, d)(w, 0), stream.write(w, 0), 0);
    check_close(row_of(form).map(Role::reader, d)(a, 1), stream.read(a), 0);
    CHECK(row_of(form).stored_width(d) == stream.stored_width());
  }
}

TEST_CASE("bf16 is computed in f32 and rounded once") {
  manual_seed(5);
  const Tensor x = randn({7, 65}, {DType::f32}).to(DType::bf16);
  for (const Map& map : {Map::recentre(65), Map::isometric(65), Map::expand(65) * Map::compress(65)}) {
    const Tensor expected = map(x.to(DType::f32), 1).to(DType::bf16);
    CHECK(map(x, 1).dtype() == DType::bf16);
    check_close(map(x, 1).to(DType::f32), expected.to(DType::f32), 0);
  }
}

TEST_CASE("maps that do not fit are refused with both values") {
  CHECK_THROWS_WITH(Map::compress(1), Contains("1") && Contains("at least 2"));
  CHECK_THROWS_WITH(Map::compress(8)(randn({7, 3}), 0), Contains("8") && Contains("[7, 3]"));
  CHECK_THROWS_WITH(Map::compress(8) * Map::compress(8), Contains("7") && Contains("8"));
  CHECK_THROWS_WITH(Map::compress(7) * Map::compress(8), Contains("width 7") && Contains("width 8"));
  CHECK_THROWS_WITH(Map::recentre(3)(from_vector<int64_t>({1, 2, 3}, {3}), 0), Contains("i64"));
  CHECK_THROWS_WITH(row_of(Form::rms_norm).map(Role::neutral, 4), Contains("neutral"));
}
