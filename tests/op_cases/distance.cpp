// Rows of distances and angles.
#include "autograd/ops/distance.h"

#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase cdist_row() {
  OpCase op = row_of("Distances", "cdist", "(a, b)", "|a_i - b_j| for rows a_i [.., n, width] and b_j [.., m, width]",
                     tolerance::composite);
  const auto add = [&](const Dims& a, const Dims& b, const Dims& result) -> Sample& {
    Sample& s = op.add(
        "", {op.draw.normal(a), op.draw.normal(b)}, [](const Tensor& x, const Tensor& y) { return cdist(x, y); },
        [=](const Array& x, const Array& y) {
          return tabulate(result, [&](const Dims& i) {
            // The row of an operand whose leading dimensions may be missing or 1.
            const auto entry = [&](const Array& from, int64_t row, int64_t k) {
              Dims at;
              for (int d = 0; d < from.shape.rank - 2; ++d) {
                const int64_t place = i[d + result.rank - from.shape.rank];
                at.push_back(from.shape[d] == 1 ? 0 : place);
              }
              at.push_back(row), at.push_back(k);
              return from.at(at);
            };
            long double squares = 0;
            for (int64_t k = 0; k < a[a.rank - 1]; ++k) {
              const long double d = entry(x, i[result.rank - 2], k) - entry(y, i[result.rank - 1], k);
              squares += d * d;
            }
            return static_cast<double>(std::sqrt(squares));
          });
        });
    s.length = static_cast<double>(a[a.rank - 1]);
    return s;
  };
  add({3, 4}, {5, 4}, {3, 5}), add({1, 1}, {1, 1}, {1, 1}), add({2, 3, 7}, {2, 2, 7}, {2, 3, 2});
  add({2, 1, 3, 2}, {4, 5, 2}, {2, 4, 3, 5}), add({0, 3}, {2, 3}, {0, 2});
  for (int64_t n : {1, 2, 4})
    for (int64_t m : {1, 3, 6})
      for (int64_t width : {2, 5}) add({n, width}, {m, width}, {n, m});
  add({60, 16}, {70, 16}, {60, 70}).large = true;
  op.refuse({"[2, 3]", "[2, 4]"}, [] { cdist(reals({2, 3}), reals({2, 4})); });
  op.refuse({"[3]", "[2, 3]"}, [] { cdist(reals({3}), reals({2, 3})); });
  op.refuse({"f32", "f64"}, [] { cdist(reals({2, 3}), reals({2, 3}, DType::f64)); });
  op.refuse({"[2, 2, 1, 3]", "[3, 1, 2, 3]"}, [] { cdist(reals({2, 2, 3}), reals({3, 2, 3})); });
  op.refuse({"i64"}, [] { cdist(integers({2, 3}), integers({2, 3})); });
  return op;
}

OpCase cosine_row() {
  OpCase op = row_of("Distances", "cosine_similarity", "(a, b, int dim = 1, double eps = 1e-8)",
                     "a . b / (max(|a|, eps) max(|b|, eps)) along dim", tolerance::composite);
  const auto add = [&](const Array& a, const Array& b, int dim, double eps) -> Sample& {
    Sample& s = op.add(
        text("dim ", dim, " eps ", eps), {a, b},
        [=](const Tensor& x, const Tensor& y) { return cosine_similarity(x, y, dim, eps); },
        [=](const Array& x, const Array& y) {
          const int d = dim < 0 ? dim + x.shape.rank : dim;
          return tabulate(removed(x.shape, d), [&](const Dims& i) {
            long double xy = 0, xx = 0, yy = 0;
            for (int64_t k = 0; k < x.shape[d]; ++k) {
              Dims at;
              for (int j = 0; j < x.shape.rank; ++j) at.push_back(j == d ? k : i[j < d ? j : j - 1]);
              xy += static_cast<long double>(x.at(at)) * y.at(at);
              xx += static_cast<long double>(x.at(at)) * x.at(at), yy += static_cast<long double>(y.at(at)) * y.at(at);
            }
            return static_cast<double>(
                xy / (std::max<long double>(std::sqrt(xx), eps) * std::max<long double>(std::sqrt(yy), eps)));
          });
        });
    s.length = static_cast<double>(a.shape[dim < 0 ? dim + a.shape.rank : dim]);
    return s;
  };
  for (const Dims& shape :
       {Dims{3, 4}, {2, 3, 5}, {7, 33}, {0, 3}, {2, 2}, {4, 3}, {3, 2, 4}, {5, 6}, {2, 3, 2}, {6, 2}, {4, 4}})
    for (int dim : {1, -2}) add(op.draw.normal(shape), op.draw.normal(shape), dim, 1e-8);
  add(op.draw.normal({2, 4}), op.draw.normal({2, 4}), 1, 100);  // eps is larger than the lengths
  add(op.draw.normal({300, 40}), op.draw.normal({300, 40}), 1, 1e-8).large = true;
  op.refuse({"f32", "f64"}, [] { cosine_similarity(reals({2, 3}), reals({2, 3}, DType::f64)); });
  op.refuse({"i64"}, [] { cosine_similarity(integers({2, 3}), integers({2, 3})); });
  op.refuse({"dimension 2", "rank 2"}, [] { cosine_similarity(reals({2, 3}), reals({2, 3}), 2); });
  op.refuse({"[2, 3]", "[2, 4]"}, [] { cosine_similarity(reals({2, 3}), reals({2, 4})); });
  return op;
}

}  // namespace

std::vector<OpCase> distance_cases() { return {cdist_row(), cosine_row()}; }

}  // namespace isonorm::test
