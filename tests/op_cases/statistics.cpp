// Rows of medians, distinct values, counts and positions.
#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/ops/index.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(const char* name, const char* parameters, const char* formula) {
  OpCase op = row_of("Positions", name, parameters, formula);
  op.draw = Draw(op.signature);
  return op;
}

// The position of the median: of the first NaN, else of the first value with rank (n - 1) / 2.
size_t median_place(const std::vector<double>& v) {
  for (size_t i = 0; i < v.size(); ++i)
    if (std::isnan(v[i])) return i;
  std::vector<size_t> at(v.size());
  for (size_t i = 0; i < at.size(); ++i) at[i] = i;
  std::stable_sort(at.begin(), at.end(), [&](size_t a, size_t b) { return v[a] < v[b]; });
  return at[(v.size() - 1) / 2];
}

OpCase median_along_row() {
  OpCase op =
      row("median", "(x, int dim, bool keepdim = false)",
          "the median along dim and its position (i64); of an even number the smaller of the two in the middle");
  const auto add = [&](const Array& x, int d, bool keepdim, const char* label = "") -> Sample& {
    const int dim = d % 2 ? d - x.shape.rank : d;
    return op.add(
        text("dim ", dim, keepdim ? " keepdim" : "", label), {x},
        [=](const Tensor& t) {
          const TopK m = median(t, dim, keepdim);
          return Tensors{m.values, m.indices};
        },
        [=](const Array& a) {
          const Dims shape = keepdim ? resized(a.shape, d, 1) : removed(a.shape, d);
          Array values(shape, a.kind), places(shape, Kind::index);
          size_t k = 0;
          for_each_index(resized(a.shape, d, 1), [&](Dims i) {
            std::vector<double> entries;
            for (i[d] = 0; i[d] < a.shape[d]; ++i[d]) entries.push_back(a.at(i));
            places.v[k] = static_cast<double>(median_place(entries));
            values.v[k++] = entries[median_place(entries)];
          });
          return Arrays{values, places};
        });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d)
      if (shape[d] > 0) add(op.draw.distinct(shape), d, d % 2);
  add(op.draw.index({5, 12}, 4), 1, false, " i64"), add(op.draw.mask({5, 12}), 0, true, " u8");
  Array special({3, 5});
  special.v = {1, NAN, 3, NAN, 2, HUGE_VAL, -HUGE_VAL, 0, 1, HUGE_VAL, 2, 2, 2, 1, 1};
  add(special, 1, false, " special values").gradient = false;
  add(op.draw.distinct(kLarge), 2, false).large = true;
  op.refuse({"dimension 2", "rank 2"}, [] { median(reals({2, 3}), 2); });
  op.refuse({"[2, 0]", "empty"}, [] { median(reals({2, 0}), 1); });
  return op;
}

OpCase median_row() {
  OpCase op = row("median", "(x)", "the median of all entries");
  const auto add = [&](const Array& x, const char* label) -> Sample& {
    return op.add(
        label, {x}, [](const Tensor& t) { return median(t); },
        [](const Array& a) { return Array({}, a.kind, a.v[median_place(a.v)]); });
  };
  for (const Dims& shape : shapes_and_large())
    if (!is_empty(shape)) add(op.draw.distinct(shape), "").large = shape == kLarge;
  add(op.draw.index({4, 3}, 50), "i64"), add(op.draw.mask({4, 3}), "u8");
  op.refuse({"[2, 0]", "no elements"}, [] { median(reals({2, 0})); });
  return op;
}

double quantile_of(std::vector<double> v, double q) {
  for (double x : v)
    if (std::isnan(x)) return x;
  std::sort(v.begin(), v.end());
  const double place = q * static_cast<double>(v.size() - 1);
  const auto below = static_cast<size_t>(place);
  const double share = place - static_cast<double>(below);
  return share == 0 ? v[below] : v[below] * (1 - share) + v[below + 1] * share;
}

OpCase quantile_row(bool along) {
  OpCase op =
      along ? row("quantile", "(x, double q, int dim, bool keepdim = false)",
                  "the element number q (n - 1) of the sorted ones along dim, between two by linear interpolation")
            : row("quantile", "(x, double q)", "the quantile of all entries");
  op.tolerance = tolerance::composite;
  const auto add = [&](const Array& x, double q, int d, bool keepdim, const char* label = "") -> Sample& {
    return op.add(
        text("q ", q, " dim ", d, label), {x},
        [=](const Tensor& t) { return along ? quantile(t, q, d, keepdim) : quantile(t, q); },
        [=](const Array& a) {
          if (!along) return Array({}, a.kind, quantile_of(a.v, q));
          Array y(keepdim ? resized(a.shape, d, 1) : removed(a.shape, d));
          size_t k = 0;
          for_each_index(resized(a.shape, d, 1), [&](Dims i) {
            std::vector<double> entries;
            for (i[d] = 0; i[d] < a.shape[d]; ++i[d]) entries.push_back(a.at(i));
            y.v[k++] = quantile_of(entries, q);
          });
          return y;
        });
  };
  int count = 0;
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < (along ? shape.rank : 1); ++d)
      if (!is_empty(shape))
        for (double q : {0.0, 0.3, 0.5, 1.0}) add(op.draw.distinct(shape), q, d, ++count % 2);
  Array special({3, 5});
  special.v = {1, NAN, 3, 4, 2, HUGE_VAL, -HUGE_VAL, 0, 1, 5, 2, 2, 2, 1, 1};
  add(special, 0.5, along ? 1 : 0, false, " special values").gradient = false;
  add(op.draw.distinct(kLarge), 0.25, 2, false).large = true;
  if (along) op.refuse({"dimension 2", "rank 2"}, [] { quantile(reals({2, 3}), 0.5, 2); });
  if (along) op.refuse({"[2, 0]", "empty"}, [] { quantile(reals({2, 0}), 0.5, 1); });
  op.refuse({"1.5", "0 to 1"}, [=] { along ? quantile(reals({2, 3}), 1.5, 0) : quantile(reals({2, 3}), 1.5); });
  op.refuse({"i64"}, [=] { along ? quantile(integers({2}), 0.5, 0) : quantile(integers({2}), 0.5); });
  if (!along) op.refuse({"[2, 0]", "no elements"}, [] { quantile(reals({2, 0}), 0.5); });
  return op;
}

// Distinct values with their counts. Each NaN counts as a value by itself. NaNs come last.
std::vector<std::pair<double, int64_t>> distinct_of(const std::vector<double>& v) {
  std::map<double, int64_t> counts;
  std::vector<std::pair<double, int64_t>> all, none;
  for (double x : v)
    if (std::isnan(x))
      none.emplace_back(x, 1);
    else
      ++counts[x];
  all.assign(counts.begin(), counts.end());
  all.insert(all.end(), none.begin(), none.end());
  return all;
}

Arrays unique_naively(const Array& x) {
  const auto found = distinct_of(x.v);
  const auto n = static_cast<int64_t>(found.size());
  Array values({n}, x.kind), counts({n}, Kind::index), inverse(x.shape, Kind::index);
  for (size_t i = 0; i < found.size(); ++i) {
    values.v[i] = found[i].first, counts.v[i] = static_cast<double>(found[i].second);
    for (size_t k = 0; k < x.v.size(); ++k)
      if (x.v[k] == found[i].first) inverse.v[k] = static_cast<double>(i);
  }
  size_t next = static_cast<size_t>(std::count_if(x.v.begin(), x.v.end(), [](double v) { return !std::isnan(v); }));
  next = found.size() - (x.v.size() - next);
  for (size_t k = 0; k < x.v.size(); ++k)
    if (std::isnan(x.v[k])) inverse.v[k] = static_cast<double>(next++);
  return {values, inverse, counts};
}

OpCase unique_row(bool all) {
  OpCase op =
      all ? row("unique_all", "(x)", "the same; the place of each entry among the values, and their counts (i64)")
          : row("unique", "(x)", "the distinct entries in ascending order; each NaN is one of its own");
  op.differentiable = op.refuses = false;
  const auto add = [&](const Array& x, const char* label) -> Sample& {
    return op.add(
        label, {x},
        [all](const Tensor& t) {
          if (!all) return Tensors{unique(t)};
          const Unique u = unique_all(t);
          return Tensors{u.values, u.inverse, u.counts};
        },
        [all](const Array& a) { return all ? unique_naively(a) : Arrays{unique_naively(a)[0]}; });
  };
  for (const Dims& shape : shapes()) {
    add(op.draw.index(shape, 6), "i64"), add(op.draw.mask(shape), "u8");
    Array x = op.draw.index(shape, 6);
    x.kind = Kind::real;
    add(x, "");
  }
  Array special({2, 4});
  special.v = {NAN, 1, HUGE_VAL, NAN, -HUGE_VAL, 1, 0, HUGE_VAL};
  add(special, "special values");
  add(op.draw.index({3000}, 40), "i64").large = true;
  return op;
}

OpCase nonzero_row() {
  OpCase op = row("nonzero", "(x)", "positions [count, rank] (i64) of the entries that are not 0");
  op.differentiable = op.refuses = false;
  for (const Dims& shape : shapes_and_large())
    for (Kind kind : {Kind::real, Kind::index, Kind::mask}) {
      Array x = op.draw.index(shape, kind == Kind::mask ? 2 : 3);
      x.kind = kind;
      if (kind == Kind::real && x.v.size() > 2) x.v[1] = NAN;
      op.add(kind == Kind::real    ? ""
             : kind == Kind::index ? "i64"
                                   : "u8",
             {x}, isonorm::nonzero,
             [](const Array& a) {
               std::vector<double> at;
               int64_t count = 0;
               for_each_index(a.shape, [&](const Dims& i) {
                 if (a.at(i) == 0) return;
                 ++count;
                 for (int64_t p : i) at.push_back(static_cast<double>(p));
               });
               Array y({count, a.shape.rank}, Kind::index);
               y.v = at;
               return y;
             })
          .large = shape == kLarge;
    }
  return op;
}

OpCase bincount_row() {
  OpCase op = row("bincount", "(ids, weights = {}, int64_t minlength = 0)",
                  "how often each of 0, 1, ... occurs (i64), or the sum of the weights of equal ids");
  op.tolerance = tolerance::reduction;
  const auto add = [&](const Arrays& x, int64_t minlength, const char* label = "") -> Sample& {
    Sample& s = op.add(
        text("minlength ", minlength, label), x,
        [=](const Tensors& t) { return bincount(t[0], t.size() > 1 ? t[1] : Tensor(), minlength); },
        [=](const Arrays& a) {
          int64_t n = minlength;
          for (double v : a[0].v) n = std::max(n, static_cast<int64_t>(v) + 1);
          Array y({n}, a.size() > 1 ? a[1].kind : Kind::index);
          for (size_t i = 0; i < a[0].v.size(); ++i)
            y.v[static_cast<size_t>(a[0].v[i])] += a.size() > 1 ? a[1].v[i] : 1;
          return y;
        });
    s.length = static_cast<double>(x[0].size());
    return s;
  };
  for (int64_t n : {0, 1, 7, 35, 100})
    for (int64_t least : {0, 3, 12}) {
      add({op.draw.index({n}, 9)}, least, " counts"), add({op.draw.index({n}, 9), op.draw.normal({n})}, least);
      add({op.draw.index({n}, 9), op.draw.index({n}, 9)}, least, " i64"), add({op.draw.mask({n})}, least, " u8");
    }
  add({op.draw.index({30000}, 100), op.draw.normal({30000})}, 0).large = true;
  op.checks = 12;
  op.refuse({"-1", "negative"}, [] { bincount(ids({3, -1})); });
  op.refuse({"f32", "[2]"}, [] { bincount(reals({2})); });
  op.refuse({"[2, 3]", "rank 1"}, [] { bincount(integers({2, 3})); });
  op.refuse({"[2]", "[3]"}, [] { bincount(ids({0, 1}), reals({3})); });
  op.refuse({"minlength is -1"}, [] { bincount(ids({0, 1}), {}, -1); });
  return op;
}

}  // namespace

std::vector<OpCase> statistics_cases() {
  return {median_along_row(), median_row(),     quantile_row(true), quantile_row(false),
          unique_row(false),  unique_row(true), nonzero_row(),      bincount_row()};
}

}  // namespace isonorm::test
