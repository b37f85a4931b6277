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

OpCase masked_select_row() {
  OpCase op = row("masked_select", "(x, mask)", "the entries of x where mask (u8) is not 0, in order");
  Draw draw(op.name);
  const auto add = [&](const Array& x, const Array& mask) -> Sample& {
    return op.add(
        x.kind == Kind::index ? "i64" : "", {x, mask}, [](const Tensors& t) { return masked_select(t[0], t[1]); },
        [](const Arrays& a) {
          Array y({0}, a[0].kind);
          for_each_index(a[0].shape, [&](const Dims& i) {
            if (a[1].stretched(i)) y.v.push_back(a[0].at(i));
          });
          y.shape = {y.size()};
          return y;
        });
  };
  for (const auto& [a, b] : shape_pairs())
    if (broadcast(a, b) == a) add(draw.normal(a), draw.mask(b));
  add(draw.normal({2, 3}), Array({2, 3}, Kind::mask, 0)), add(draw.index({2, 3}, 9), draw.mask({2, 3}));
  add(draw.normal(kLarge), draw.mask({1001})).large = true;
  op.refuse({"[2]", "[2, 2]"}, [] { masked_select(reals({2}), reals({2, 2}, DType::u8)); });
  op.refuse({"f32", "u8"}, [] { masked_select(reals({2}), reals({2})); });
  return op;
}

// scatter and scatter_add: the reference goes through the source in order.
OpCase scatter_row(const std::string& name, const char* formula,
                   Tensor (*call)(const Tensor&, int, const Tensor&, const Tensor&), bool adds) {
  OpCase op = row(name, "(x, int dim, index, src)", formula);
  if (adds) op.tolerance = tolerance::reduction;
  Draw draw(op.name);
  const auto add = [&](const Array& x, const Array& src, int d, const char* label = "") -> Sample& {
    const int dim = d % 2 ? d - x.shape.rank : d;
    Sample& s = op.add(
        text("dim ", dim, label), {x, draw.index(src.shape, x.shape[d]), src},
        [=](const Tensors& t) { return call(t[0], dim, t[1], t[2]); },
        [=](const Arrays& a) {
          Array y = a[0];
          for_each_index(a[2].shape, [&](Dims i) {
            const double v = a[2].at(i);
            i[d] = static_cast<int64_t>(a[1].at(i));
            y.at(i) = adds ? y.at(i) + v : v;
          });
          return y;
        });
    s.length = adds ? static_cast<double>(src.shape[d] + 1) : 1;
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) {
      if (is_empty(shape)) continue;
      Dims fewer = shape, more = shape;
      more[d] += 2;
      for (int i = 0; i < shape.rank; ++i) fewer[i] = (shape[i] + 1) / 2;
      add(draw.normal(shape), draw.normal(fewer), d), add(draw.normal(shape), draw.normal(more), d);
    }
  add(draw.normal({3, 4}), draw.normal({3, 0}), 1);
  for (int d : {0, 1, 2}) add(draw.normal(kLarge), draw.normal(kLarge), d).large = true;
  add(draw.normal({9}), draw.normal({20000}), 0).large = true;
  if (!adds) add(draw.index({3, 4}, 9), draw.index({2, 5}, 9), 1, " i64");
  const auto at = [](const Dims& shape) {
    return on_test_device(std::vector<int64_t>(static_cast<size_t>(numel(shape))), shape);
  };
  op.refuse({"3", "element 0"}, [=] { call(reals({2, 3}), 1, on_test_device<int64_t>({3}, {1, 1}), reals({1, 1})); });
  op.refuse({"[2, 3]", "[3, 1]"}, [=] { call(reals({2, 3}), 1, at({3, 1}), reals({3, 1})); });
  op.refuse({"[2, 1]", "[1, 2]"}, [=] { call(reals({2, 3}), 1, at({1, 2}), reals({2, 1})); });
  op.refuse({"f32", "f64"}, [=] { call(reals({2, 3}), 1, at({2, 1}), reals({2, 1}, DType::f64)); });
  op.refuse({"f32", "i64"}, [=] { call(reals({2, 3}), 1, reals({2, 1}), reals({2, 1})); });
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), 2, at({2, 1}), reals({2, 1})); });
  if (adds) op.refuse({"i64", "bf16"}, [=] { call(integers({2, 3}), 1, at({2, 1}), integers({2, 1})); });
  return op;
}

OpCase index_add_row() {
  OpCase op = row("index_add", "(x, int dim, ids, src)", "x with entry j of src added to entry ids_j of dim");
  op.tolerance = tolerance::reduction;
  Draw draw(op.name);
  const auto add = [&](const Dims& shape, int d, int64_t m) -> Sample& {
    const int dim = d % 2 ? d - shape.rank : d;
    Dims from = shape;
    from[d] = m;
    Sample& s = op.add(
        text("dim ", dim), {draw.normal(shape), draw.index({m}, shape[d]), draw.normal(from)},
        [=](const Tensors& x) { return index_add(x[0], dim, x[1], x[2]); },
        [=](const Arrays& x) {
          Array y = x[0];
          for_each_index(from, [&](Dims i) {
            const double v = x[2].at(i);
            i[d] = static_cast<int64_t>(x[1].v[i[d]]);
            y.at(i) += v;
          });
          return y;
        });
    s.length = static_cast<double>(m + 1);
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add(shape, d, shape[d] == 0 ? 0 : d % 2 ? 5 : 2);
  for (int d : {0, 1, 2}) add(kLarge, d, kLarge[d] + 2).large = true;
  op.refuse({"2", "element 0", "[1]"}, [] { index_add(reals({2, 3}), 0, ids({2}), reals({1, 3})); });
  op.refuse({"dimension 2", "rank 2"}, [] { index_add(reals({2, 3}), 2, ids({0}), reals({1, 3})); });
  op.refuse({"[2, 3]", "[1, 3]"}, [] { index_add(reals({2, 3}), 0, ids({0}), reals({2, 3})); });
  op.refuse({"f32", "f64"}, [] { index_add(reals({2, 3}), 0, ids({0}), reals({1, 3}, DType::f64)); });
  op.refuse({"f32", "i64"}, [] { index_add(reals({2, 3}), 0, reals({1}), reals({1, 3})); });
  op.refuse({"[1, 1]"}, [] { index_add(reals({2, 3}), 0, on_test_device<int64_t>({0}, {1, 1}), reals({1, 3})); });
  op.refuse({"i64", "bf16"}, [] { index_add(integers({2}), 0, ids({0}), integers({1})); });
  return op;
}

// The places of a row in order: of equals the earlier first, NaN above all.
std::vector<int64_t> sorted_places(const std::vector<double>& row, bool descending) {
  std::vector<int64_t> at(row.size());
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i);
  std::stable_sort(at.begin(), at.end(), [&](int64_t i, int64_t j) {
    const double a = row[descending ? j : i], b = row[descending ? i : j];
    return std::isnan(b) ? !std::isnan(a) : a < b;
  });
  return at;
}

OpCase sort_row(const std::string& name, const char* formula, bool with_values) {
  OpCase op = row(name, "(x, int dim = -1, bool descending = false)", formula);
  op.differentiable = with_values;
  Draw draw(name);
  const auto add = [&](const Array& x, int d, bool descending, const std::string& label = "") -> Sample& {
    const int dim = d % 2 ? d : d - x.shape.rank;
    return op.add(
        text("dim ", dim, descending ? " descending" : "", label), {x},
        [=](const Tensors& t) {
          if (!with_values) return Tensors{argsort(t[0], dim, descending)};
          const TopK r = isonorm::sort(t[0], dim, descending);
          return Tensors{r.values, r.indices};
        },
        [=](const Arrays& a) {
          Array values(a[0].shape, a[0].kind), indices(a[0].shape, Kind::index);
          for_each_index(a[0].shape, [&](Dims i) {
            if (i[d] != 0) return;
            std::vector<double> row;
            for (; i[d] < a[0].shape[d]; ++i[d]) row.push_back(a[0].at(i));
            const std::vector<int64_t> at = sorted_places(row, descending);
            for (i[d] = 0; i[d] < a[0].shape[d]; ++i[d])
              values.at(i) = row[at[i[d]]], indices.at(i) = static_cast<double>(at[i[d]]);
          });
          return with_values ? Arrays{values, indices} : Arrays{indices};
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add(draw.distinct(shape), d, d % 2), add(draw.distinct(shape), d, d % 2 == 0);
  Array special({3, 4});
  special.v = {1, NAN, 3, NAN, 2, 2, 1, 2, HUGE_VAL, -HUGE_VAL, 0, HUGE_VAL};
  for (bool descending : {false, true}) {
    add(special, 1, descending, " special values").gradient = false;
    add(draw.index({3, 35}, 7), 1, descending, " i64"), add(draw.mask({3, 35}), 1, descending, " u8");
    add(draw.index({2, 1500}, 700), 1, descending, " i64");
    add(draw.distinct({301, 171}, 0.01), 1, descending).large = true;
  }
  op.refuse({"dimension 2", "rank 2"}, [=] {
    with_values ? void(isonorm::sort(reals({2, 3}), 2)) : void(argsort(reals({2, 3}), 2));
  });
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
          // An entry stands behind as many as come before it.
          for_each_index(a[0].shape, [&](Dims at) {
            const int64_t j = at[d];
            const double v = a[0].at(at);
            int64_t before = 0;
            for (int64_t o = 0; o < a[0].shape[d]; ++o) {
              at[d] = o;
              const double w = a[0].at(at);
              const bool larger = std::isnan(w) ? !std::isnan(v) : w > v,
                         equal = w == v || (std::isnan(w) && std::isnan(v));
              before += larger || (equal && o < j);
            }
            at[d] = before;
            if (before < k) values.at(at) = v, indices.at(at) = static_cast<double>(j);
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
  add(draw.distinct({2, 1500}, 0.01), 1, 70, " of many").gradient = false;
  Array ties = draw.index({4, 30, 3}, 6);
  ties.kind = Kind::real, ties.v[3 * 17 + 1] = NAN;
  for (int64_t k : {1, 2, 13, 30}) add(ties, 1, k, " ties").gradient = false;
  op.refuse({"4", "[2, 3]"}, [] { topk(reals({2, 3}), 4); });
  op.refuse({"-1"}, [] { topk(reals({2, 3}), -1); });
  op.refuse({"dimension 2", "rank 2"}, [] { topk(reals({2, 3}), 1, 2); });
  return op;
}

}  // namespace

std::vector<OpCase> index_cases() {
  return {
      embedding_row(),
      index_select_row(),
      gather_row(),
      one_hot_row(),
      masked_fill_row(),
      masked_select_row(),
      scatter_row("scatter", "x with src at index along dim, at the same place elsewhere; of several the last", scatter,
                  false),
      scatter_row("scatter_add", "x with src added at index along dim, at the same place elsewhere", scatter_add, true),
      index_add_row(),
      topk_row(),
      sort_row("sort", "the entries along dim in order, NaN as the largest, and their positions (i64); stable", true),
      sort_row("argsort", "the positions of sort (i64)", false)};
}

}  // namespace isonorm::test
