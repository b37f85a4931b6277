// Rows of the ops that choose by position.
#include "autograd/ops/index.h"

#include <algorithm>
#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula) {
  return {.name = name,
          .group = "Positions",
          .signature = name + parameters,
          .formula = std::move(formula),
          .tolerance = tolerance::exact};
}

OpCase embedding_row() {
  OpCase op = row("embedding", "(weight, ids)", "row ids_i of weight [v, d] at place i");
  Draw draw(op.name);
  const auto add = [&](const Dims& ids, int64_t v, int64_t d) -> Sample& {
    Dims shape = ids;
    shape.push_back(d);
    return op.add(
        "", {draw.normal({v, d}), draw.index(ids, v)}, [](const Tensors& x) { return embedding(x[0], x[1]); },
        [=](const Arrays& x) {
          return tabulate(shape, [&](Dims i) {
            const int64_t column = i[i.rank - 1];
            --i.rank;
            return x[0].at({static_cast<int64_t>(x[1].at(i)), column});
          });
        });
  };
  for (const Dims& ids : shapes(0, 4)) {
    add(ids, 3, 4);
    if (ids.rank < 2) add(ids, 1, 1);
  }
  add({4}, 2, 0);
  add({600}, 7, 101).large = true;
  op.refuse({"3", "element 1", "[2]"}, [] { embedding(reals({3, 2}), ids({0, 3})); });
  op.refuse({"f32", "i64"}, [] { embedding(reals({3, 2}), reals({2})); });
  op.refuse({"[3]"}, [] { embedding(reals({3}), integers({0})); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 0]", "8"}, [] { embedding(reals({3, 2}), integers({1, 1, 1, 1, 1, 1, 1, 0})); });
  return op;
}

OpCase index_select_row() {
  OpCase op = row("index_select", "(x, int dim, ids)", "entry ids_j of x at place j of dim");
  Draw draw(op.name);
  const auto add = [&](const Dims& shape, int d, int64_t m) -> Sample& {
    const int dim = d % 2 ? d - shape.rank : d;
    Dims to = shape;
    to[d] = m;
    return op.add(
        text("dim ", dim), {draw.normal(shape), draw.index({m}, shape[d])},
        [=](const Tensors& x) { return index_select(x[0], dim, x[1]); },
        [=](const Arrays& x) {
          return tabulate(
              to,
              [&](Dims i) {
                i[d] = static_cast<int64_t>(x[1].v[i[d]]);
                return x[0].at(i);
              },
              x[0].kind);
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add(shape, d, shape[d] == 0 ? 0 : d % 2 ? 5 : 2);
  for (int d : {0, 1, 2}) add(kLarge, d, kLarge[d] + 2).large = true;
  for (const Array& x : {draw.index({3, 4, 5}, 1000), draw.mask({3, 4, 5})})
    op.add(
        text("dim 1 ", x.kind == Kind::index ? "i64" : "u8"), {x, draw.index({6}, 4)},
        [](const Tensors& x) { return index_select(x[0], 1, x[1]); },
        [](const Arrays& x) {
          const auto at = [&](const Dims& i) { return x[0].at({i[0], static_cast<int64_t>(x[1].v[i[1]]), i[2]}); };
          return tabulate({3, 6, 5}, at, x[0].kind);
        });
  op.refuse({"2", "element 0", "[1]"}, [] { index_select(reals({2, 3}), 0, ids({2})); });
  op.refuse({"dimension 2", "rank 2"}, [] { index_select(reals({2, 3}), 2, integers({1})); });
  op.refuse({"f32", "i64"}, [] { index_select(reals({2, 3}), 0, reals({1})); });
  op.refuse({"[1, 1]"}, [] { index_select(reals({2, 3}), 0, on_test_device<int64_t>({0}, {1, 1})); });
  return op;
}

OpCase gather_row() {
  OpCase op = row("gather", "(x, int dim, index)", "x at index along dim, at the same place elsewhere");
  Draw draw(op.name);
  const auto add = [&](const Dims& shape, const Dims& to, int d) -> Sample& {
    const int dim = d % 2 ? d - shape.rank : d;
    return op.add(
        text("dim ", dim), {draw.normal(shape), draw.index(to, shape[d])},
        [=](const Tensors& x) { return gather(x[0], dim, x[1]); },
        [=](const Arrays& x) {
          return tabulate(to, [&](Dims i) {
            i[d] = static_cast<int64_t>(x[1].at(i));
            return x[0].at(i);
          });
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) {
      if (is_empty(shape)) continue;
      Dims fewer = shape;
      for (int i = 0; i < shape.rank; ++i) fewer[i] = i == d ? shape[d] + 2 : (shape[i] + 1) / 2;
      add(shape, fewer, d);
    }
  add({3, 4}, {3, 0}, 1);
  for (int d : {0, 1, 2}) add(kLarge, kLarge, d).large = true;
  for (const Array& x : {draw.index({3, 4}, 1000), draw.mask({3, 4})})
    op.add(
        text("dim 1 ", x.kind == Kind::index ? "i64" : "u8"), {x, draw.index({2, 5}, 4)},
        [](const Tensors& x) { return gather(x[0], 1, x[1]); },
        [](const Arrays& x) {
          const auto at = [&](const Dims& i) { return x[0].at({i[0], static_cast<int64_t>(x[1].at(i))}); };
          return tabulate({2, 5}, at, x[0].kind);
        });
  op.refuse({"3", "element 0"}, [] { gather(reals({2, 3}), 1, on_test_device<int64_t>({3}, {1, 1})); });
  op.refuse({"[2, 3]", "[3, 1]"}, [] { gather(reals({2, 3}), 1, on_test_device<int64_t>({0, 0, 0}, {3, 1})); });
  op.refuse({"[2, 3]", "[2]"}, [] { gather(reals({2, 3}), 1, ids({0, 0})); });
  op.refuse({"f32", "i64"}, [] { gather(reals({2, 3}), 1, reals({2, 1})); });
  op.refuse({"dimension 2", "rank 2"}, [] { gather(reals({2, 3}), 2, integers({2, 1})); });
  return op;
}

OpCase one_hot_row() {
  OpCase op = row("one_hot", "(ids, int64_t classes, DType dtype = DType::i64)",
                  "1 at position ids of a new last dimension, 0 elsewhere");
  op.differentiable = false;
  op.dtypes = {DType::f64};
  Draw draw(op.name);
  const auto add = [&](const Dims& ids, int64_t classes, DType dtype) -> Sample& {
    Dims to = ids;
    to.push_back(classes);
    return op.add(
        text(classes, " classes ", dtype), {draw.index(ids, classes)},
        [=](const Tensors& x) { return one_hot(x[0], classes, dtype); },
        [=](const Arrays& x) {
          Array y = tabulate(to, [&](Dims i) {
            const int64_t c = i[i.rank - 1];
            --i.rank;
            return x[0].at(i) == static_cast<double>(c);
          });
          y.dtype = dtype;
          return y;
        });
  };
  for (const Dims& ids : shapes(0, 4))
    for (DType dtype : {DType::i64, DType::f32, DType::bf16, DType::u8, DType::f64})
      add(ids, dtype == DType::u8 ? 1 : 4, dtype);
  add({600}, 101, DType::f32).large = true;
  op.refuse({"4", "element 0"}, [] { one_hot(ids({4}), 4); });
  op.refuse({"f32", "i64"}, [] { one_hot(reals({1}), 4); });
  op.refuse({"-1"}, [] { one_hot(integers({0}), -1); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 0]", "8"}, [] { one_hot(integers({1, 1, 1, 1, 1, 1, 1, 0}), 4); });
  return op;
}

OpCase masked_fill_row() {
  OpCase op = row("masked_fill", "(x, mask, double value)", "value where mask (u8) is not 0, x elsewhere");
  Draw draw(op.name);
  for (const auto& [a, b] : shape_pairs()) {
    if (broadcast(a, b) != a) continue;
    for (double value : {-2.0, -HUGE_VAL})
      op.add(
            text("value ", value), {draw.normal(a), draw.mask(b)},
            [=](const Tensors& x) { return masked_fill(x[0], x[1], value); },
            [=](const Arrays& x) {
              return tabulate(x[0].shape, [&](const Dims& i) { return x[1].stretched(i) ? value : x[0].at(i); });
            })
          .gradient = std::isfinite(value);
  }
  op.add(
        "value 1", {draw.normal(kLarge), draw.mask({1001})},
        [](const Tensors& x) { return masked_fill(x[0], x[1], 1); },
        [](const Arrays& x) {
          return tabulate(x[0].shape, [&](const Dims& i) { return x[1].stretched(i) ? 1 : x[0].at(i); });
        })
      .large = true;
  op.refuse({"[2]", "[2, 2]"}, [] { masked_fill(reals({2}), reals({2, 2}, DType::u8), 0); });
  op.refuse({"f32", "u8"}, [] { masked_fill(reals({2}), reals({2}), 0); });
  op.refuse({"i64"}, [] { masked_fill(integers({2}), reals({2}, DType::u8), 0); });
  return op;
}

OpCase topk_row() {
  OpCase op =
      row("topk", "(x, int64_t k, int dim = -1)", "the k largest along dim, largest first, and their positions (i64)");
  Draw draw(op.name);
  const auto add = [&](const Array& x, int d, int64_t k, const std::string& label = "") -> Sample& {
    const int dim = d % 2 ? d : d - x.shape.rank;
    return op.add(
        text("k ", k, " dim ", dim, label), {x},
        [=](const Tensors& t) {
          const TopK r = topk(t[0], k, dim);
          return Tensors{r.values, r.indices};
        },
        [=](const Arrays& a) {
          Dims to = a[0].shape;
          to[d] = k;
          Array values(to), indices(to, Kind::index);
          for_each_index(to, [&](Dims at) {
            const Dims place = at;
            const int64_t rank = at[d], n = a[0].shape[d];
            // The entry that `rank` others come before.
            for (int64_t j = 0; j < n; ++j) {
              at[d] = j;
              const double v = a[0].at(at);
              int64_t before = 0;
              for (int64_t o = 0; o < n; ++o) {
                at[d] = o;
                const double w = a[0].at(at);
                const bool larger = std::isnan(w) ? !std::isnan(v) : w > v,
                           equal = w == v || (std::isnan(w) && std::isnan(v));
                before += larger || (equal && o < j);
              }
              if (before == rank) values.at(place) = v, indices.at(place) = static_cast<double>(j);
            }
          });
          return Arrays{values, indices};
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t k : {int64_t{1}, shape[d]})
        if (k <= shape[d] && (k != 1 || shape[d] != 1)) add(draw.distinct(shape), d, k);
  add(draw.distinct({5, 4}), 0, 3), add(draw.distinct({5, 4}), 1, 0);
  Array special({3, 4});
  special.v = {1, NAN, 3, NAN, 2, 2, 1, 2, HUGE_VAL, -HUGE_VAL, 0, HUGE_VAL};
  add(special, 1, 4, " special values").gradient = false;
  add(draw.distinct({301, 171}, 0.01), 1, 5).large = true;
  op.refuse({"4", "[2, 3]"}, [] { topk(reals({2, 3}), 4); });
  op.refuse({"-1"}, [] { topk(reals({2, 3}), -1); });
  op.refuse({"dimension 2", "rank 2"}, [] { topk(reals({2, 3}), 1, 2); });
  op.refuse({"i64"}, [] { topk(integers({2}), 1); });
  return op;
}

}  // namespace

std::vector<OpCase> index_cases() {
  return {embedding_row(), index_select_row(), gather_row(), one_hot_row(), masked_fill_row(), topk_row()};
}

}  // namespace isonorm::test
