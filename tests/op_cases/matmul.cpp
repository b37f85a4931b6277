// Rows of the matrix products.
#include "autograd/ops/matmul.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

const char* const kGroup = "Matrix products";

// sum_k a[..., i, k] b[..., k, j], with rank-1 operands as a row and a column.
Array product(Array a, Array b) {
  const bool row = a.shape.rank == 1, column = b.shape.rank == 1;
  if (row) a.shape = {1, a.shape[0]};
  if (column) b.shape = {b.shape[0], 1};
  Dims batch_a = a.shape, batch_b = b.shape;
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  const int64_t m = a.shape[a.shape.rank - 2], k = a.shape[a.shape.rank - 1], n = b.shape[b.shape.rank - 1];
  Dims shape = broadcast(batch_a, batch_b);
  const int batch = shape.rank;
  shape.push_back(m);
  shape.push_back(n);
  Array y = tabulate(shape, [&](const Dims& at) {
    Dims ia = at, ib = at;
    long double sum = 0;
    for (int64_t l = 0; l < k; ++l) {
      ia[batch + 1] = l;
      ib[batch] = l;
      sum += static_cast<long double>(a.stretched(ia)) * b.stretched(ib);
    }
    return static_cast<double>(sum);
  });
  Dims squeezed = shape;
  squeezed.rank = batch;
  if (!row) squeezed.push_back(m);
  if (!column) squeezed.push_back(n);
  y.shape = squeezed;
  return y;
}

OpCase matmul_row() {
  OpCase op = row_of(kGroup, "matmul", "(a, b)", "y_ij = sum over k of a_ik b_kj; leading dimensions broadcast",
                     tolerance::product);
  op.checks = 100;
  const auto add = [&](const Dims& a, const Dims& b) -> Sample& {
    Sample& s = op.add("", {op.draw.normal(a), op.draw.normal(b)}, matmul, product);
    s.length = static_cast<double>(a[a.rank - 1]);
    return s;
  };
  // Sizes around the block sizes of BLAS kernels, with every combination of operand ranks.
  const int64_t triples[][3] = {{1, 1, 1}, {2, 3, 4}, {1, 5, 1}, {4, 1, 3}, {3, 4, 1}, {1, 2, 6},
                                {5, 5, 5}, {7, 2, 3}, {2, 9, 2}, {0, 2, 3}, {2, 0, 3}, {2, 3, 0}};
  for (const auto& [m, k, n] : triples) {
    add({m, k}, {k, n});
    add({k}, {k, n});
    add({m, k}, {k});
    add({2, m, k}, {k, n});
    add({m, k}, {3, k, n});
    add({2, m, k}, {2, k, n});
    add({1, m, k}, {2, k, n});
    add({2, 1, m, k}, {3, k, n});
    add({2, 2, m, k}, {2, 2, k, n});
    add({2, m, k}, {k});
    add({k}, {2, k, n});
  }
  add({3}, {3});
  add({1}, {1});
  add({0}, {0});
  add({33, 17}, {17, 9});
  add({0, 2, 3}, {3, 2});
  add({4, 70, 40}, {4, 40, 50}).large = true;
  op.refuse({"[2, 3]", "[4, 5]"}, [] { matmul(reals({2, 3}), reals({4, 5})); });
  op.refuse({"[]", "[2]", "rank 0"}, [] { matmul(reals({}), reals({2})); });
  op.refuse({"f32", "f64"}, [] { matmul(reals({2, 2}), reals({2, 2}, DType::f64)); });
  op.refuse({"i64"}, [] { matmul(integers({2, 2}), integers({2, 2})); });
  op.refuse({"[2]", "[3]"}, [] { matmul(reals({2, 1, 1}), reals({3, 1, 1})); });
  return op;
}

OpCase dot_row() {
  OpCase op = row_of(kGroup, "dot", "(a, b)", "sum of a_i b_i", tolerance::product);
  op.checks = 5;
  for (int64_t n : {0, 1, 2, 7, 35, 100, 20000}) {
    Sample& s = op.add("", {op.draw.normal({n}), op.draw.normal({n})}, dot, product);
    s.length = static_cast<double>(n);
    s.large = n > 1000;
  }
  op.refuse({"[2]", "[3]"}, [] { dot(reals({2}), reals({3})); });
  op.refuse({"[2, 2]"}, [] { dot(reals({2, 2}), reals({2, 2})); });
  op.refuse({"f32", "f64"}, [] { dot(reals({2}), reals({2}, DType::f64)); });
  op.refuse({"i64"}, [] { dot(integers({2}), integers({2})); });
  return op;
}

OpCase outer_row() {
  OpCase op = row_of(kGroup, "outer", "(a, b)", "y_ij = a_i b_j", tolerance::rounded);
  op.checks = 10;
  for (int64_t m : {0, 1, 5, 300})
    for (int64_t n : {0, 1, 7, 301}) {
      Sample& s = op.add("", {op.draw.normal({m}), op.draw.normal({n})}, outer, [=](const Array& a, const Array& b) {
        return tabulate({m, n}, [&](const Dims& i) { return a.v[i[0]] * b.v[i[1]]; });
      });
      s.large = m * n > 10000;
      s.slope = 1;  // a sum of products of normal numbers may be small
    }
  op.refuse({"[2]", "[2, 2]"}, [] { outer(reals({2}), reals({2, 2})); });
  op.refuse({"f32", "f64"}, [] { outer(reals({2}), reals({2}, DType::f64)); });
  op.refuse({"i64"}, [] { outer(integers({2}), integers({2})); });
  return op;
}

OpCase linear_row() {
  OpCase op = row_of(kGroup, "linear", "(x, weight, bias = {})", "y = x W^T + b, weight [out, in]", tolerance::product);
  op.checks = 100;
  const auto reference = [](const Arrays& x) { return affine(x[0], x[1], x.size() > 2 ? &x[2] : nullptr); };
  const auto add = [&](const Dims& x, int64_t out, bool bias) -> Sample& {
    const int64_t in = x[x.rank - 1];
    Arrays inputs = {op.draw.normal(x), op.draw.normal({out, in})};
    if (bias) inputs.push_back(op.draw.normal({out}));
    Sample& s = op.add(
        "", inputs, [](const Tensors& t) { return linear(t[0], t[1], t.size() > 2 ? t[2] : Tensor()); }, reference);
    s.length = static_cast<double>(in);
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (bool bias : {false, true})
      for (int64_t out : {1, 3, 6}) add(shape, out, bias);
  add({3, 200, 90}, 64, true).large = true;
  op.refuse({"[2, 3]", "[5, 4]"}, [] { linear(reals({2, 3}), reals({5, 4})); });
  op.refuse({"[5]"}, [] { linear(reals({5}), reals({5})); });
  op.refuse({"[4]", "[5, 3]"}, [] { linear(reals({2, 3}), reals({5, 3}), reals({4})); });
  op.refuse({"f32", "f64"}, [] { linear(reals({2, 3}), reals({5, 3}, DType::f64)); });
  op.refuse({"i64"}, [] { linear(integers({2, 3}), integers({5, 3})); });
  op.refuse({"[]"}, [] { linear(reals({}), reals({5, 3})); });
  return op;
}

}  // namespace

std::vector<OpCase> matmul_cases() { return {matmul_row(), dot_row(), outer_row(), linear_row()}; }

}  // namespace isonorm::test
