// Rows of the reductions.
#include <algorithm>
#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

const char* const kGroup = "Reductions";

struct Choice {
  std::vector<int> dims;
  bool keepdim;
};

// Choices of dimensions for a rank: all, first, last, the outer two (around a kept one), negative.
std::vector<Choice> choices(int rank) {
  std::vector<Choice> c = {{{}, false}, {{}, true}};
  if (rank >= 1) c.insert(c.end(), {{{0}, false}, {{-1}, true}});
  if (rank >= 2) c.insert(c.end(), {{{-1}, false}, {{1, 0}, true}});
  if (rank >= 3) c.insert(c.end(), {{{0, 2}, false}, {{0, -1}, true}, {{1}, false}});
  return c;
}

bool chosen(const Choice& c, int d, int rank) {
  if (c.dims.empty()) return true;
  return std::count(c.dims.begin(), c.dims.end(), d) || std::count(c.dims.begin(), c.dims.end(), d - rank);
}

// Applies f to each list of entries that are reduced together, in plain loops.
template <class F> Array reduce_naively(const Array& x, const Choice& c, F f, Kind kind = Kind::real) {
  const int rank = x.shape.rank;
  Dims wide = x.shape, kept;
  for (int d = 0; d < rank; ++d) {
    if (chosen(c, d, rank))
      wide[d] = 1;
    else
      kept.push_back(x.shape[d]);
  }
  Array cells(wide);
  std::vector<std::vector<double>> entries(cells.v.size());
  for_each_index(x.shape, [&](const Dims& i) {
    Dims cell = i;
    for (int d = 0; d < rank; ++d)
      if (wide[d] == 1) cell[d] = 0;
    entries[cells.offset(cell)].push_back(x.at(i));
  });
  Array y(c.keepdim ? wide : kept, kind);
  for (size_t k = 0; k < y.v.size(); ++k) y.v[k] = f(entries[k]);
  return y;
}

Dims shape_of(const Dims& shape, const Choice& c) {
  Dims kept;
  for (int d = 0; d < shape.rank; ++d)
    if (!chosen(c, d, shape.rank)) kept.push_back(shape[d]);
  return kept;
}

int64_t count_of(const Dims& shape, const Choice& c) {
  int64_t n = 1;
  for (int d = 0; d < shape.rank; ++d)
    if (chosen(c, d, shape.rank)) n *= shape[d];
  return n;
}

std::string label_of(const Choice& c) {
  std::string s = c.dims.empty() ? "all" : "dims";
  for (int d : c.dims) s += text(' ', d);
  return c.keepdim ? s + " keepdim" : s;
}

long double total(const std::vector<double>& v) {
  long double s = 0;
  for (double x : v) s += x;
  return s;
}

double variance(const std::vector<double>& v, double correction) {
  const long double n = v.size(), m = total(v) / n;
  long double s = 0;
  for (double x : v) s += (x - m) * (x - m);
  return static_cast<double>(s / (n - correction));
}

using Call = std::function<Tensor(const Tensor&, const Choice&)>;

struct Domain {
  bool over_nothing = true;  // true if empty cells are allowed
  bool distinct = false;     // entries must not tie
  int64_t least = 0;         // minimum number of elements per cell
};

template <class F> void add_samples(OpCase& op, const std::string& label, const Call& call, F f, Domain domain = {}) {
  const auto add = [&](const Array& x, const Choice& c, const std::string& more = "") -> Sample& {
    Sample& s = op.add(
        label_of(c) + label + more, {x}, [=](const Tensor& t) { return call(t, c); },
        [=](const Array& a) { return reduce_naively(a, c, f); });
    s.length = static_cast<double>(count_of(x.shape, c));
    return s;
  };
  for (const Dims& shape : shapes())
    for (const Choice& c : choices(shape.rank)) {
      const int64_t n = count_of(shape, c);
      if (n < domain.least) continue;
      if (n == 0 && !domain.over_nothing && numel(shape_of(shape, c)) > 0) continue;
      add(domain.distinct ? op.draw.distinct(shape) : op.draw.normal(shape), c);
    }
  const std::vector<int> outer = {0, 2}, middle = {1};
  for (const Choice& c : {Choice{{}, false}, Choice{outer, true}, Choice{middle, false}, Choice{{-1}, false}})
    add(domain.distinct ? op.draw.distinct(kLarge, 0.01) : op.draw.normal(kLarge), c).large = true;
  Array far = domain.distinct ? op.draw.distinct({3, 5}) : op.draw.normal({3, 5});
  for (double& v : far.v) v += 1e4;
  add(far, {{-1}, false}, " mean 1e4");
}

// NaN propagates, whether it is the first, a middle or the last entry.
template <class F> void add_nan_samples(OpCase& op, const Call& call, F f) {
  Array x = op.draw.distinct({3, 35});
  for (int64_t i : {0, 35 + 18, 2 * 35 + 34}) x.v[i] = NAN;
  const auto nan_or = [f](const std::vector<double>& v) {
    return std::any_of(v.begin(), v.end(), [](double e) { return std::isnan(e); }) ? NAN : f(v);
  };
  for (const Choice& c : {Choice{{1}, false}, Choice{{0}, false}}) {
    Sample& s = op.add(
        label_of(c) + " NaN", {x}, [=](const Tensor& t) { return call(t, c); },
        [=](const Array& a) { return reduce_naively(a, c, nan_or); });
    s.length = 35;
    s.gradient = false;
  }
}

// Sums and products of integers are i64; maxima and minima have x's dtype.
template <class F> void add_integers(OpCase& op, const Call& call, F f) {
  const bool sums = op.name == "sum", products = op.name == "prod";
  for (const Dims& shape : {Dims{}, Dims{0}, Dims{7}, Dims{3, 0}, Dims{35, 6}, Dims{2, 5, 4}, kLarge})
    for (const Choice& c : choices(shape.rank)) {
      if (!sums && !products && count_of(shape, c) == 0 && numel(shape_of(shape, c)) > 0) continue;
      Array numbers = op.draw.index(shape, products ? 2 : 1000), mask = op.draw.mask(shape);
      for (double& v : numbers.v) v = products ? 2 * v - 1 : sums ? v : v - 500;  // a product stays within i64
      for (const Array& x : {numbers, mask})
        op.add(
              label_of(c) + (x.kind == Kind::index ? " i64" : " u8"), {x}, [=](const Tensor& t) { return call(t, c); },
              [=](const Array& a) { return reduce_naively(a, c, f, sums || products ? Kind::index : a.kind); })
            .large = shape == kLarge;
    }
}

template <class Function> void add_refusals(OpCase& op, Function call) {
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), std::vector<int>{2}); });
  op.refuse({"dimension 1", "twice"}, [=] { call(reals({2, 3}), std::vector<int>{1, 1}); });
  if (op.name != "sum" && op.name != "prod" && op.name != "amax" && op.name != "amin")
    op.refuse({"i64", "f32"}, [=] { call(integers({2, 3}), std::vector<int>{}); });
}

template <class F>
OpCase row(std::string name, std::string formula, Tensor (*call)(const Tensor&, std::vector<int>, bool), F f,
           Domain domain = {}, Tolerance tolerance = tolerance::reduction) {
  OpCase op =
      row_of(kGroup, name, "(x, std::vector<int> dims = {}, bool keepdim = false)", std::move(formula), tolerance);
  const auto over = [call](const Tensor& x, const Choice& c) { return call(x, c.dims, c.keepdim); };
  add_samples(op, "", over, f, domain);
  add_nan_samples(op, over, f);
  if (op.name == "sum" || domain.distinct) add_integers(op, over, f);
  add_refusals(op, [call](const Tensor& x, std::vector<int> dims) { call(x, dims, false); });
  if (!domain.over_nothing) op.refuse({"[2, 0]", "no elements"}, [call] { call(reals({2, 0}), {1}, false); });
  return op;
}

OpCase var_row(const char* name, const char* formula, Tensor (*f)(const Tensor&, std::vector<int>, double, bool),
               double (*of_variance)(double), int64_t least) {
  OpCase op = row_of(kGroup, name, "(x, std::vector<int> dims = {}, double correction = 1, bool keepdim = false)",
                     formula, tolerance::composite);
  for (double correction : {1.0, 0.0})
    add_samples(
        op, text(" correction ", correction),
        [=](const Tensor& x, const Choice& c) { return f(x, c.dims, correction, c.keepdim); },
        [=](const std::vector<double>& v) { return of_variance(variance(v, correction)); },
        {.over_nothing = false, .least = correction == 1 ? std::max<int64_t>(least, 2) : least});
  add_refusals(op, [f](const Tensor& x, std::vector<int> dims) { f(x, dims, 1, false); });
  return op;
}

// An op along one dimension; naive(x, i, d) is entry i of its result.
template <class Naive>
OpCase along_row(const std::string& name, const char* formula, Tensor (*f)(const Tensor&, int),
                 const std::vector<Dims>& more, const Naive& naive) {
  OpCase op = row_of(kGroup, name, "(x, int dim)", formula, tolerance::reduction);
  const auto add = [&](const Dims& shape, int dim) -> Sample& {
    Sample& s = op.add(
        text("dim ", dim), {op.draw.normal(shape)}, [dim, f](const Tensor& x) { return f(x, dim); },
        [dim, naive](const Array& x) {
          const int d = dim < 0 ? dim + x.shape.rank : dim;
          return tabulate(x.shape, [&](const Dims& i) { return static_cast<double>(naive(x, i, d)); });
        });
    s.length = static_cast<double>(shape[dim < 0 ? dim + shape.rank : dim]);
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (int dim = 0; dim < shape.rank; ++dim) add(shape, dim % 2 ? dim - shape.rank : dim);
  for (const Dims& shape : more) add(shape, 0);
  for (int dim : {0, 1, 2}) add(kLarge, dim).large = true;
  op.refuse({"dimension 1", "rank 1"}, [f] { f(reals({2}), 1); });
  return op;
}

// The sum of x over dimension d from index 0 to `last`; the other indices are i's.
long double sum_to(const Array& x, Dims i, int d, int64_t last) {
  long double sum = 0;
  for (i[d] = 0; i[d] <= last; ++i[d]) sum += x.at(i);
  return sum;
}

OpCase cumsum_row() {
  OpCase op = along_row("cumsum", "y_i = x_0 + ... + x_i along dim; of i64 and u8 in i64", cumsum, {},
                        [](const Array& x, const Dims& i, int d) { return sum_to(x, i, d, i[d]); });
  for (const Array& x : {op.draw.index({5, 300}, 1000), op.draw.mask({5, 300})})
    for (int d : {0, 1})
      op.add(
          text("dim ", d, x.kind == Kind::index ? " i64" : " u8"), {x}, [d](const Tensor& t) { return cumsum(t, d); },
          [d](const Array& a) {
            return tabulate(
                a.shape, [&](const Dims& i) { return static_cast<double>(sum_to(a, i, d, i[d])); }, Kind::index);
          });
  return op;
}

OpCase recentre_row() {
  OpCase op = along_row("recentre", "x minus its mean along dim", recentre,
                        {{130, 3}, {3, 130}},  // more rows than are summed together, and more columns than a strip has
                        [](const Array& x, const Dims& i, int d) {
                          const int64_t n = x.shape[d];
                          return x.at(i) - sum_to(x, i, d, n - 1) / n;
                        });
  op.refuse({"i64"}, [] { recentre(integers({2}), 0); });
  return op;
}

// Entries around 1 and -1, so that the product stays in range. Further samples contain zeros.
OpCase prod_row() {
  const auto product = [](const std::vector<double>& v) {
    long double p = 1;
    for (double x : v) p *= x;
    return static_cast<double>(p);
  };
  OpCase op = row("prod", "product of the entries; 1 over nothing", isonorm::prod, product);
  op.tolerance = tolerance::composite;
  for (Sample& s : op.samples)
    if (s.inputs[0].kind == Kind::real)
      for (double& v : s.inputs[0].v) v = (v < 0 ? -1 : 1) * std::exp(0.2 * std::sin(v));
  op.draw = Draw("prod of zeros");
  add_integers(
      op, [](const Tensor& x, const Choice& c) { return prod(x, c.dims, c.keepdim); }, product);
  for (const Choice& c : choices(2)) {
    Array x = op.draw.normal({3, 4});
    x.v[0] = x.v[5] = x.v[7] = 0;  // a row with one zero, a row with two, a row with none
    op.add(
          label_of(c) + " zeros", {x}, [c](const Tensor& t) { return prod(t, c.dims, c.keepdim); },
          [=](const Array& a) { return reduce_naively(a, c, product); })
        .length = 12;
  }
  return op;
}

// any and all, for masks, integers and floating-point numbers.
OpCase truth_row(const std::string& name, const char* formula, Tensor (*call)(const Tensor&, std::vector<int>, bool),
                 bool every) {
  OpCase op = row_of(kGroup, name, "(x, std::vector<int> dims = {}, bool keepdim = false)", formula);
  op.differentiable = false;
  const auto add = [&](const Array& x, const Choice& c, const std::string& label) -> Sample& {
    return op.add(
        label_of(c) + label, {x}, [=](const Tensor& t) { return call(t, c.dims, c.keepdim); },
        [=](const Array& a) {
          const auto truth = [every](const std::vector<double>& v) {
            const auto set = std::count_if(v.begin(), v.end(), [](double e) { return !(e == 0); });
            return every ? set == static_cast<int64_t>(v.size()) : set > 0;
          };
          return reduce_naively(a, c, truth, Kind::mask);
        });
  };
  for (const Dims& shape : shapes())
    for (const Choice& c : choices(shape.rank)) {
      Array mask = op.draw.mask(shape), rare = Array(shape, Kind::index, every), number = op.draw.normal(shape);
      if (rare.size() > 2) rare.v[1] = every ? 0 : 7;
      for (size_t i = 0; i < number.v.size(); ++i)
        number.v[i] = i % 7 == 5 ? NAN : every == (i % 3 > 0) ? number.v[i] : 0;
      add(mask, c, " u8"), add(rare, c, " i64"), add(number, c, " NaN");
    }
  Array large(kLarge, Kind::mask, every);
  large.v[40000] = !every;
  for (const Choice& c : {Choice{{}, false}, Choice{{-1}, false}}) add(large, c, " u8").large = true;
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), {2}, false); });
  op.refuse({"dimension 1", "twice"}, [=] { call(reals({2, 3}), {1, 1}, false); });
  return op;
}

OpCase place_row(const std::string& name, const char* which, Tensor (*call)(const Tensor&, int, bool), double sign) {
  OpCase op = row_of(kGroup, name, "(x, int dim = -1, bool keepdim = false)",
                     text("position of the first ", which, " entry along dim (i64)"));
  op.differentiable = false;
  const auto add = [&](const Array& x, int dim, bool keepdim, const char* label = "") -> Sample& {
    return op.add(
        text("dim ", dim, keepdim ? " keepdim" : "", label), {x},
        [=](const Tensor& t) { return call(t, dim, keepdim); },
        [=](const Array& a) {
          const auto place = [sign](const std::vector<double>& v) {
            size_t best = 0;
            for (size_t i = 0; i < v.size() && !std::isnan(v[best]); ++i)
              if (sign * v[i] > sign * v[best] || std::isnan(v[i])) best = i;
            return static_cast<double>(best);
          };
          return reduce_naively(a, {{dim}, keepdim}, place, Kind::index);
        });
  };
  for (const Dims& shape : shapes(1))
    for (int dim = 0; dim < shape.rank; ++dim)
      if (shape[dim] > 0)
        add(op.draw.normal(shape), dim, dim % 2), add(op.draw.index(shape, 3), dim - shape.rank, false, " ties");
  for (Sample& s : op.samples) s.inputs[0].kind = Kind::real;
  for (Array x : {op.draw.index({7, 300}, 200), op.draw.mask({7, 300})}) {
    if (x.kind == Kind::index)
      for (double& v : x.v) v -= 100;
    for (int dim : {0, 1}) add(x, dim, false, x.kind == Kind::index ? " i64" : " u8");
  }
  Array special({2, 4});
  special.v = {1, NAN, 3, NAN, -HUGE_VAL, -HUGE_VAL, 2, HUGE_VAL};
  add(special, 1, false, " special values");
  add(op.draw.normal(kLarge), -1, false).large = true;
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), 2, false); });
  op.refuse({"[2, 0]", "empty"}, [=] { call(reals({2, 0}), 1, false); });
  return op;
}

// allclose and equal; the result is returned as a tensor without dimensions.
OpCase agreement_row(const char* name, const char* parameters, const char* formula,
                     bool (*call)(const Tensor&, const Tensor&), double tolerated) {
  OpCase op = row_of(kGroup, name, parameters, formula);
  op.differentiable = false;
  const auto add = [&](const Array& a, const Array& b) {
    op.add(
          text("as number ", op.samples.size()), {a, b},
          [=](const Tensor& x, const Tensor& y) {
            return full({}, call(x, y), {DType::u8, x.device()});
          },
          [=](const Array& x, const Array& y) {
            bool all = true;
            for (size_t i = 0; i < x.v.size(); ++i)
              all = all && std::fabs(x.v[i] - y.v[i]) <= tolerated * std::fabs(y.v[i]);
            return Array({}, Kind::mask, all);
          })
        .large = a.shape == kLarge;
  };
  for (const Dims& shape : shapes_and_large()) {
    Array a = op.draw.index(shape, 9), b = a;
    add(a, b);
    if (!a.v.empty()) b.v.back() += 1, add(a, b);
    a.kind = b.kind = Kind::real;
    add(a, b), add(a, a);
  }
  return op;
}

}  // namespace

std::vector<OpCase> reduce_cases() {
  const auto largest = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
  const auto smallest = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
  std::vector<OpCase> all;
  all.push_back(row("sum", "sum of the entries; 0 over nothing; of i64 and u8 in i64", isonorm::sum,
                    [](const std::vector<double>& v) { return static_cast<double>(total(v)); }));
  all.push_back(row("mean", "sum / n; NaN over nothing", isonorm::mean,
                    [](const std::vector<double>& v) { return static_cast<double>(total(v) / v.size()); }));
  all.push_back(prod_row());
  all.push_back(row("amax", "largest entry; ties share the gradient", isonorm::amax, largest,
                    {.over_nothing = false, .distinct = true}, tolerance::exact));
  all.push_back(row("amin", "smallest entry; ties share the gradient", isonorm::amin, smallest,
                    {.over_nothing = false, .distinct = true}, tolerance::exact));
  all.push_back(var_row(
      "var", "sum of (x - mean)^2 / max(0, n - correction)", isonorm::var, [](double v) { return v; }, 1));
  all.push_back(var_row(
      "std", "var^(1/2); the derivative at 0 is 0", isonorm::std, [](double v) { return std::sqrt(v); }, 2));
  all.push_back(row("norm", "(sum of x^2)^(1/2)", isonorm::norm, [](const std::vector<double>& v) {
    long double s = 0;
    for (double x : v) s += static_cast<long double>(x) * x;
    return static_cast<double>(std::sqrt(s));
  }));
  all.push_back(row("logsumexp", "ln of the sum of e^x, shifted by the largest x; -inf over nothing",
                    isonorm::logsumexp, [](const std::vector<double>& v) {
                      if (v.empty()) return -HUGE_VAL;
                      const double top = *std::max_element(v.begin(), v.end());
                      long double s = 0;
                      for (double x : v) s += std::exp(static_cast<long double>(x) - top);
                      return static_cast<double>(top + std::log(s));
                    }));
  all.push_back(cumsum_row());
  all.push_back(recentre_row());
  all.push_back(place_row("argmax", "largest", argmax, 1));
  all.push_back(place_row("argmin", "smallest", argmin, -1));
  all.push_back(truth_row("any", "1 (u8) where an entry is not 0, as NaN; 0 over nothing", isonorm::any, false));
  all.push_back(truth_row("all", "1 (u8) where no entry is 0; 1 over nothing", isonorm::all, true));
  all.push_back(agreement_row(
      "allclose", "(a, b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false)",
      "whether isclose holds everywhere", [](const Tensor& a, const Tensor& b) { return allclose(a, b); }, 1e-5));
  all.back().refuse({"f32", "f64"}, [] { allclose(reals({2}), reals({2}, DType::f64)); });
  all.back().refuse({"[2]", "[3]"}, [] { allclose(reals({2}), reals({3})); });
  all.push_back(agreement_row("equal", "(a, b)", "whether a and b have one dtype, one shape and equal entries",
                              isonorm::equal, 0));
  all.back().refuses = false;
  return all;
}

}  // namespace isonorm::test
