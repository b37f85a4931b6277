// Rows of ops that select by position.
#include "autograd/ops/index.h"

#include <algorithm>
#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula) {
  return row_of("Positions", std::move(name), parameters, std::move(formula));
}

// A position, from a number of an array.
int64_t place_of(double id) { return static_cast<int64_t>(id); }

OpCase embedding_row() {
  OpCase op = row("embedding", "(weight, ids)", "row ids_i of weight [v, d] at place i");
  const auto add = [&](const Dims& ids, int64_t v, int64_t d) -> Sample& {
    return op.add(
        "", {op.draw.normal({v, d}), op.draw.index(ids, v)}, embedding, [=](const Array& table, const Array& ids) {
          const int last = ids.shape.rank;
          const auto source = [&](const Dims& i) { return Dims{place_of(ids.at(removed(i, last))), i[last]}; };
          return moved(table, inserted(ids.shape, last, d), source);
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
  const auto add = [&](const Array& x, int d, int64_t m, const char* label = "") -> Sample& {
    const int dim = d % 2 ? d - x.shape.rank : d;
    return op.add(
        text("dim ", dim, label), {x, op.draw.index({m}, x.shape[d])},
        [=](const Tensor& t, const Tensor& ids) { return index_select(t, dim, ids); },
        [=](const Array& a, const Array& ids) {
          return moved(a, resized(a.shape, d, m), [&](const Dims& i) { return resized(i, d, place_of(ids.v[i[d]])); });
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add(op.draw.normal(shape), d, shape[d] == 0 ? 0 : d % 2 ? 5 : 2);
  for (int d : {0, 1, 2}) add(op.draw.normal(kLarge), d, kLarge[d] + 2).large = true;
  add(op.draw.index({3, 4, 5}, 1000), 1, 6, " i64"), add(op.draw.mask({3, 4, 5}), 1, 6, " u8");
  op.refuse({"2", "element 0", "[1]"}, [] { index_select(reals({2, 3}), 0, ids({2})); });
  op.refuse({"dimension 2", "rank 2"}, [] { index_select(reals({2, 3}), 2, integers({1})); });
  op.refuse({"f32", "i64"}, [] { index_select(reals({2, 3}), 0, reals({1})); });
  op.refuse({"[1, 1]"}, [] { index_select(reals({2, 3}), 0, on_test_device<int64_t>({0}, {1, 1})); });
  return op;
}

OpCase gather_row() {
  OpCase op = row("gather", "(x, int dim, index)", "x at index along dim, at the same place elsewhere");
  const auto add = [&](const Array& x, const Dims& to, int d, const char* label = "") -> Sample& {
    const int dim = d % 2 ? d - x.shape.rank : d;
    return op.add(
        text("dim ", dim, label), {x, op.draw.index(to, x.shape[d])},
        [=](const Tensor& t, const Tensor& index) { return gather(t, dim, index); },
        [=](const Array& a, const Array& index) {
          return moved(a, to, [&](const Dims& i) { return resized(i, d, place_of(index.at(i))); });
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) {
      if (is_empty(shape)) continue;
      Dims fewer = shape;
      for (int i = 0; i < shape.rank; ++i) fewer[i] = i == d ? shape[d] + 2 : (shape[i] + 1) / 2;
      add(op.draw.normal(shape), fewer, d);
    }
  add(op.draw.normal({3, 4}), {3, 0}, 1);
  for (int d : {0, 1, 2}) add(op.draw.normal(kLarge), kLarge, d).large = true;
  add(op.draw.index({3, 4}, 1000), {2, 5}, 1, " i64"), add(op.draw.mask({3, 4}), {2, 5}, 1, " u8");
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
  const auto add = [&](const Dims& ids, int64_t classes, DType dtype) -> Sample& {
    return op.add(
        text(classes, " classes ", dtype), {op.draw.index(ids, classes)},
        [=](const Tensor& x) { return one_hot(x, classes, dtype); },
        [=](const Array& x) {
          const int last = x.shape.rank;
          Array y = tabulate(inserted(x.shape, last, classes),
                             [&](const Dims& i) { return place_of(x.at(removed(i, last))) == i[last]; });
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
  OpCase op = row("masked_fill", "(x, mask, Scalar value)", "value where mask (u8) is not 0, x elsewhere");
  const auto add = [&](const Dims& shape, const Dims& mask, double value) -> Sample& {
    Sample& s = op.add(
        text("value ", value), {op.draw.normal(shape), op.draw.mask(mask)},
        [=](const Tensor& x, const Tensor& m) { return masked_fill(x, m, value); },
        [=](const Array& x, const Array& m) {
          return tabulate(x.shape, [&](const Dims& i) { return m.stretched(i) ? value : x.at(i); });
        });
    s.gradient = std::isfinite(value);
    return s;
  };
  for (const auto& [a, b] : shape_pairs())
    if (broadcast(a, b) == a) add(a, b, -2), add(a, b, -HUGE_VAL);
  add(kLarge, {1001}, 1).large = true;
  op.refuse({"[2]", "[2, 2]"}, [] { masked_fill(reals({2}), reals({2, 2}, DType::u8), 0); });
  op.refuse({"f32", "u8"}, [] { masked_fill(reals({2}), reals({2}), 0); });
  for (const Array& x : {op.draw.index({5, 7}, 9), op.draw.mask({5, 7})})
    op.add(
        x.kind == Kind::index ? "i64" : "u8", {x, op.draw.mask({7})},
        [](const Tensor& t, const Tensor& m) { return masked_fill(t, m, 3); },
        [](const Array& t, const Array& m) {
          return tabulate(
              t.shape, [&](const Dims& i) { return m.stretched(i) ? 3 : t.at(i); }, t.kind);
        });
  op.refuse({"300", "u8"}, [] { masked_fill(reals({2}, DType::u8), reals({2}, DType::u8), 300); });
  return op;
}

OpCase masked_select_row() {
  OpCase op = row("masked_select", "(x, mask)", "the entries of x where mask (u8) is not 0, in order");
  const auto add = [&](const Array& x, const Array& mask) -> Sample& {
    return op.add(x.kind == Kind::index ? "i64" : "", {x, mask}, masked_select, [](const Array& a, const Array& m) {
      Array y({0}, a.kind);
      for_each_index(a.shape, [&](const Dims& i) {
        if (m.stretched(i)) y.v.push_back(a.at(i));
      });
      y.shape = {y.size()};
      return y;
    });
  };
  for (const auto& [a, b] : shape_pairs())
    if (broadcast(a, b) == a) add(op.draw.normal(a), op.draw.mask(b));
  add(op.draw.normal({2, 3}), Array({2, 3}, Kind::mask, 0)), add(op.draw.index({2, 3}, 9), op.draw.mask({2, 3}));
  add(op.draw.normal(kLarge), op.draw.mask({1001})).large = true;
  op.refuse({"[2]", "[2, 2]"}, [] { masked_select(reals({2}), reals({2, 2}, DType::u8)); });
  op.refuse({"f32", "u8"}, [] { masked_select(reals({2}), reals({2})); });
  return op;
}

// scatter and scatter_add. The reference goes through the source in order.
OpCase scatter_row(const std::string& name, const char* formula,
                   Tensor (*call)(const Tensor&, int, const Tensor&, const Tensor&), bool adds) {
  OpCase op = row(name, "(x, int dim, index, src)", formula);
  if (adds) op.tolerance = tolerance::reduction;
  const auto add = [&](const Array& x, const Array& src, int d, const char* label = "") -> Sample& {
    const int dim = d % 2 ? d - x.shape.rank : d;
    Sample& s = op.add(
        text("dim ", dim, label), {x, op.draw.index(src.shape, x.shape[d]), src},
        [=](const Tensor& t, const Tensor& index, const Tensor& from) { return call(t, dim, index, from); },
        [=](Array y, const Array& index, const Array& from) {
          for_each_index(from.shape, [&](const Dims& i) {
            double& to = y.at(resized(i, d, place_of(index.at(i))));
            to = adds ? to + from.at(i) : from.at(i);
          });
          return y;
        });
    s.length = adds ? static_cast<double>(src.shape[d] + 1) : 1;
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) {
      if (is_empty(shape)) continue;
      Dims fewer = shape;
      for (int64_t& size : std::span(fewer.v, shape.rank)) size = (size + 1) / 2;
      add(op.draw.normal(shape), op.draw.normal(fewer), d);
      add(op.draw.normal(shape), op.draw.normal(resized(shape, d, shape[d] + 2)), d);
    }
  add(op.draw.normal({3, 4}), op.draw.normal({3, 0}), 1);
  for (int d : {0, 1, 2}) add(op.draw.normal(kLarge), op.draw.normal(kLarge), d).large = true;
  add(op.draw.normal({9}), op.draw.normal({20000}), 0).large = true;
  add(op.draw.index({3, 4}, 9), op.draw.index({2, 5}, 9), 1, " i64");
  const auto at = [](const Dims& shape) {
    return on_test_device(std::vector<int64_t>(static_cast<size_t>(numel(shape))), shape);
  };
  op.refuse({"3", "element 0"}, [=] { call(reals({2, 3}), 1, on_test_device<int64_t>({3}, {1, 1}), reals({1, 1})); });
  op.refuse({"[2, 3]", "[3, 1]"}, [=] { call(reals({2, 3}), 1, at({3, 1}), reals({3, 1})); });
  op.refuse({"[2, 1]", "[1, 2]"}, [=] { call(reals({2, 3}), 1, at({1, 2}), reals({2, 1})); });
  op.refuse({"f32", "f64"}, [=] { call(reals({2, 3}), 1, at({2, 1}), reals({2, 1}, DType::f64)); });
  op.refuse({"f32", "i64"}, [=] { call(reals({2, 3}), 1, reals({2, 1}), reals({2, 1})); });
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), 2, at({2, 1}), reals({2, 1})); });
  if (adds) op.refuse({"u8", "bf16"}, [=] { call(reals({2}, DType::u8), 0, at({1}), reals({1}, DType::u8)); });
  return op;
}

OpCase index_add_row() {
  OpCase op = row("index_add", "(x, int dim, ids, src)", "x with entry j of src added to entry ids_j of dim");
  op.tolerance = tolerance::reduction;
  const auto add_entries = [&](const std::string& label, const Array& x, const Array& src, int d) -> Sample& {
    const Dims& shape = x.shape;
    const int64_t m = src.shape[d];
    const int dim = d % 2 ? d - shape.rank : d;
    Sample& s = op.add(
        text("dim ", dim, label), {x, op.draw.index({m}, shape[d]), src},
        [=](const Tensor& x, const Tensor& ids, const Tensor& src) { return index_add(x, dim, ids, src); },
        [=](Array y, const Array& ids, const Array& src) {
          for_each_index(src.shape, [&](const Dims& i) { y.at(resized(i, d, place_of(ids.v[i[d]]))) += src.at(i); });
          return y;
        });
    s.length = static_cast<double>(m + 1);
    return s;
  };
  const auto add = [&](const Dims& shape, int d, int64_t m) -> Sample& {
    return add_entries("", op.draw.normal(shape), op.draw.normal(resized(shape, d, m)), d);
  };
  add_entries(" i64", op.draw.index({3, 4}, 9), op.draw.index({3, 7}, 9), 1);
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add(shape, d, shape[d] == 0 ? 0 : d % 2 ? 5 : 2);
  for (int d : {0, 1, 2}) add(kLarge, d, kLarge[d] + 2).large = true;
  op.refuse({"2", "element 0", "[1]"}, [] { index_add(reals({2, 3}), 0, ids({2}), reals({1, 3})); });
  op.refuse({"dimension 2", "rank 2"}, [] { index_add(reals({2, 3}), 2, ids({0}), reals({1, 3})); });
  op.refuse({"[2, 3]", "[1, 3]"}, [] { index_add(reals({2, 3}), 0, ids({0}), reals({2, 3})); });
  op.refuse({"f32", "f64"}, [] { index_add(reals({2, 3}), 0, ids({0}), reals({1, 3}, DType::f64)); });
  op.refuse({"f32", "i64"}, [] { index_add(reals({2, 3}), 0, reals({1}), reals({1, 3})); });
  op.refuse({"[1, 1]"}, [] { index_add(reals({2, 3}), 0, on_test_device<int64_t>({0}, {1, 1}), reals({1, 3})); });
  op.refuse({"u8", "bf16"}, [] { index_add(reals({2}, DType::u8), 0, ids({0}), reals({1}, DType::u8)); });
  return op;
}

// The positions of a row in sorted order: equal values in their original order, NaN above all others.
std::vector<int64_t> sorted_places(const std::vector<double>& row, bool descending) {
  std::vector<int64_t> at(row.size());
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i);
  std::stable_sort(at.begin(), at.end(), [&](int64_t i, int64_t j) {
    const double a = row[descending ? j : i], b = row[descending ? i : j];
    return std::isnan(b) ? !std::isnan(a) : a < b;
  });
  return at;
}

// The first k entries along d in sorted order, and their positions.
Arrays sorted(const Array& x, int d, int64_t k, bool descending) {
  const Dims to = resized(x.shape, d, k);
  Array values(to, x.kind), indices(to, Kind::index);
  for_each_index(resized(x.shape, d, 1), [&](const Dims& i) {
    std::vector<double> row;
    for (int64_t j = 0; j < x.shape[d]; ++j) row.push_back(x.at(resized(i, d, j)));
    const std::vector<int64_t> at = sorted_places(row, descending);
    for (int64_t j = 0; j < k; ++j)
      values.at(resized(i, d, j)) = row[at[j]], indices.at(resized(i, d, j)) = static_cast<double>(at[j]);
  });
  return {values, indices};
}

// Equal entries, NaN and infinities.
Array special_values() {
  Array special({3, 4});
  special.v = {1, NAN, 3, NAN, 2, 2, 1, 2, HUGE_VAL, -HUGE_VAL, 0, HUGE_VAL};
  return special;
}

OpCase sort_row(const std::string& name, const char* formula, bool with_values) {
  OpCase op = row(name, "(x, int dim = -1, bool descending = false)", formula);
  op.differentiable = with_values;
  const auto add = [&](const Array& x, int d, bool descending, const std::string& label = "") -> Sample& {
    const int dim = d % 2 ? d : d - x.shape.rank;
    return op.add(
        text("dim ", dim, descending ? " descending" : "", label), {x},
        [=](const Tensor& t) {
          if (!with_values) return Tensors{argsort(t, dim, descending)};
          const TopK r = isonorm::sort(t, dim, descending);
          return Tensors{r.values, r.indices};
        },
        [=](const Array& a) {
          const Arrays both = sorted(a, d, a.shape[d], descending);
          return with_values ? both : Arrays{both[1]};
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d)
      add(op.draw.distinct(shape), d, d % 2), add(op.draw.distinct(shape), d, d % 2 == 0);
  for (bool descending : {false, true}) {
    add(special_values(), 1, descending, " special values").gradient = false;
    add(op.draw.index({3, 35}, 7), 1, descending, " i64"), add(op.draw.mask({3, 35}), 1, descending, " u8");
    add(op.draw.index({2, 1500}, 700), 1, descending, " i64");
    add(op.draw.distinct({301, 171}, 0.01), 1, descending).large = true;
  }
  op.refuse({"dimension 2", "rank 2"}, [=] {
    with_values ? void(isonorm::sort(reals({2, 3}), 2)) : void(argsort(reals({2, 3}), 2));
  });
  return op;
}

OpCase topk_row() {
  OpCase op =
      row("topk", "(x, int64_t k, int dim = -1)", "the k largest along dim, largest first, and their positions (i64)");
  const auto add = [&](const Array& x, int d, int64_t k, const std::string& label = "") -> Sample& {
    const int dim = d % 2 ? d : d - x.shape.rank;
    return op.add(
        text("k ", k, " dim ", dim, label), {x},
        [=](const Tensor& t) {
          const TopK r = topk(t, k, dim);
          return Tensors{r.values, r.indices};
        },
        [=](const Array& a) { return sorted(a, d, k, true); });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t k : {int64_t{1}, shape[d]})
        if (k <= shape[d] && (k != 1 || shape[d] != 1)) add(op.draw.distinct(shape), d, k);
  add(op.draw.distinct({5, 4}), 0, 3), add(op.draw.distinct({5, 4}), 1, 0);
  add(special_values(), 1, 4, " special values").gradient = false;
  add(op.draw.distinct({301, 171}, 0.01), 1, 5).large = true;
  add(op.draw.distinct({2, 1500}, 0.01), 1, 70, " of many").gradient = false;
  Array ties = op.draw.index({4, 30, 3}, 6);
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
