// Rows of the comparisons and of where().
#include <cmath>
#include <functional>

#include "autograd/ops/pointwise.h"
#include "core/formulas/pointwise.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Oracle {
  Tensor (*call)(const Tensor&, const Tensor&);
  Tensor (*with_number)(const Tensor&, Scalar);
  std::function<bool(double, double)> value;
  std::string formula;
};

Oracle oracle(ops::Eq) { return {isonorm::eq, isonorm::eq, std::equal_to<>(), "1 where a = b"}; }
Oracle oracle(ops::Ne) { return {isonorm::ne, isonorm::ne, std::not_equal_to<>(), "1 where a is not b"}; }
Oracle oracle(ops::Lt) { return {isonorm::lt, isonorm::lt, std::less<>(), "1 where a < b"}; }
Oracle oracle(ops::Le) { return {isonorm::le, isonorm::le, std::less_equal<>(), "1 where a <= b"}; }
Oracle oracle(ops::Gt) { return {isonorm::gt, isonorm::gt, std::greater<>(), "1 where a > b"}; }
Oracle oracle(ops::Ge) { return {isonorm::ge, isonorm::ge, std::greater_equal<>(), "1 where a >= b"}; }

Oracle oracle(ops::LogicalAnd) {
  return {isonorm::logical_and, nullptr, [](double a, double b) { return !(a == 0 || b == 0); },
          "1 where neither a nor b is 0"};
}
Oracle oracle(ops::LogicalOr) {
  return {isonorm::logical_or, nullptr, [](double a, double b) { return !(a == 0 && b == 0); },
          "1 where a or b is not 0"};
}

OpCase row(std::string name, std::string parameters, const Oracle& o) {
  OpCase op = row_of("Comparisons and choice", std::move(name), parameters, o.formula);
  op.differentiable = false;
  return op;
}

// Small integers, so that less, equal and greater all occur.
Array whole(Draw& draw, const Dims& shape, Kind kind) {
  Array x = draw.index(shape, 3);
  x.kind = kind;
  return x;
}

template <class Op> OpCase comparison_row() {
  const Oracle o = oracle(Op{});
  OpCase op = row(Op::name, "(a, b)", o);
  const auto run = o.call;
  const auto reference = [o](const Array& a, const Array& b) {
    const auto at = [&](const Dims& i) { return o.value(a.stretched(i), b.stretched(i)); };
    return tabulate(broadcast(a.shape, b.shape), at, Kind::mask);
  };
  for (const auto& [a, b] : shape_pairs()) {
    op.add("", {whole(op.draw, a, Kind::real), whole(op.draw, b, Kind::real)}, run, reference);
    op.add("i64", {whole(op.draw, a, Kind::index), whole(op.draw, b, Kind::index)}, run, reference);
  }
  op.add("u8", {whole(op.draw, {5, 7}, Kind::mask), whole(op.draw, {7}, Kind::mask)}, run, reference);
  op.add("u8 and i64", {whole(op.draw, {5, 7}, Kind::mask), whole(op.draw, {7}, Kind::index)}, run, reference);
  op.add("i64 and floating", {whole(op.draw, {5, 7}, Kind::index), whole(op.draw, {7}, Kind::real)}, run, reference);
  Array special({4, 1});
  special.v = {NAN, HUGE_VAL, -HUGE_VAL, 0};
  op.add("special values", {special, tabulate({4}, [&](const Dims& i) { return special.v[i[0]]; })}, run, reference);
  op.add("", {whole(op.draw, kLarge, Kind::real), whole(op.draw, {17, 1}, Kind::real)}, run, reference).large = true;
  op.refuse({"[2, 3]", "[2]"}, [o] { o.call(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "f64"}, [o] { o.call(reals({2}), reals({2}, DType::f64)); });
  return op;
}

template <class Op> OpCase comparison_number_row() {
  const Oracle o = oracle(Op{});
  OpCase op = row(Op::name, "(a, Scalar b)", o);
  op.draw = Draw(op.signature);
  const auto add = [&](const std::string& label, const Array& x, double b) -> Sample& {
    return op.add(
        text(label, b), {x}, [=](const Tensor& t) { return o.with_number(t, b); },
        [=](Array a) {
          for (double& v : a.v) v = o.value(v, b);
          a.kind = Kind::mask;
          return a;
        });
  };
  for (const Dims& shape : shapes()) {
    add("", whole(op.draw, shape, Kind::real), 1);
    add("i64 ", whole(op.draw, shape, Kind::index), 1);
    add("u8 ", whole(op.draw, shape, Kind::mask), 0);
  }
  Array special({4});
  special.v = {NAN, HUGE_VAL, -HUGE_VAL, 0.5};
  for (double b : {0.5, -HUGE_VAL, HUGE_VAL, static_cast<double>(NAN)}) add("special values ", special, b);
  add("", whole(op.draw, kLarge, Kind::real), 2).large = true;
  for (double b : {0.5, static_cast<double>(NAN), HUGE_VAL}) add("i64 ", whole(op.draw, {5, 7}, Kind::index), b);
  for (double b : {-1.0, 0.5, 256.0}) add("u8 ", whole(op.draw, {5, 7}, Kind::mask), b);
  op.refuses = false;
  return op;
}

template <class... Ops> std::vector<OpCase> rows(ops::List<Ops...>) { return {comparison_row<Ops>()...}; }
template <class... Ops> std::vector<OpCase> number_rows(ops::List<Ops...>) { return {comparison_number_row<Ops>()...}; }

OpCase logical_not_row() {
  OpCase op = row("logical_not", "(x)", {nullptr, nullptr, nullptr, "1 where x is 0"});
  op.refuses = false;
  for (const Dims& shape : shapes_and_large())
    for (const auto& [kind, label] : {std::pair{Kind::real, ""}, {Kind::index, "i64"}, {Kind::mask, "u8"}})
      op.add(
            label, {whole(op.draw, shape, kind)}, [](const Tensor& x) { return !x; },
            [](Array y) {
              y.kind = Kind::mask;
              for (double& v : y.v) v = v == 0 ? 1 : 0;
              return y;
            })
          .large = shape == kLarge;
  return op;
}

OpCase where_row() {
  OpCase op =
      row_of("Comparisons and choice", "where", "(condition, a, b)", "a where condition (u8) is not 0, b elsewhere");
  const auto run = [](const Tensor& c, const Tensor& a, const Tensor& b) { return where(c, a, b); };
  const auto reference = [](const Array& c, const Array& a, const Array& b) {
    const auto at = [&](const Dims& i) { return (c.stretched(i) != 0 ? a : b).stretched(i); };
    return tabulate(broadcast(c.shape, broadcast(a.shape, b.shape)), at, a.kind);
  };
  for (const auto& [a, b] : shape_pairs()) {
    op.add("", {op.draw.mask(a), op.draw.normal(b), op.draw.normal(a)}, run, reference);
    op.add("", {op.draw.mask({1}), op.draw.normal(a), op.draw.normal(b)}, run, reference);
  }
  op.add("i64", {op.draw.mask({3, 2}), op.draw.index({2}, 9), op.draw.index({3, 1}, 9)}, run, reference);
  op.add("", {op.draw.mask({17, 1}), op.draw.normal(kLarge), op.draw.normal({})}, run, reference).large = true;
  op.add("i64 and floating", {op.draw.mask({3, 2}), op.draw.index({2}, 9), op.draw.normal({3, 1})}, run,
         [reference](const Array& c, const Array& a, const Array& b) {
           Array y = reference(c, a, b);
           y.kind = Kind::real;
           return y;
         });
  op.refuse({"f32", "u8"}, [] { where(reals({2}), reals({2}), reals({2})); });
  op.refuse({"f32", "f64"}, [] { where(reals({2}, DType::u8), reals({2}), reals({2}, DType::f64)); });
  op.refuse({"[2]", "[3]"}, [] { where(reals({2}, DType::u8), reals({2}), reals({3})); });
  return op;
}

// where() with a number before or after the tensor.
OpCase where_number_row(bool behind) {
  OpCase op =
      row_of("Comparisons and choice", "where", behind ? "(condition, a, Scalar b)" : "(condition, Scalar a, b)",
             "as with a tensor of the number");
  op.draw = Draw(op.signature);
  const auto add = [&](const char* label, const Dims& condition, const Array& x, double n, bool real = false) {
    Sample& s = op.add(
        text(label, n), {op.draw.mask(condition), x},
        [=](const Tensor& c, const Tensor& t) { return behind ? where(c, t, n) : where(c, n, t); },
        [=](const Array& c, const Array& t) {
          Array y = tabulate(
              broadcast(c.shape, t.shape),
              [&](const Dims& i) { return (c.stretched(i) != 0) == behind ? t.stretched(i) : n; }, t.kind);
          if (real) y.kind = Kind::real, y.dtype = DType::f32;
          return y;
        });
    s.large = x.shape == kLarge, s.gradient = x.kind == Kind::real;
  };
  for (const auto& [a, b] : shape_pairs()) add("", a, op.draw.normal(b), -2);
  add("", {17, 1}, op.draw.normal(kLarge), 1);
  add("i64 ", {3, 1}, op.draw.index({2}, 9), 7);
  add("i64 ", {3, 1}, op.draw.index({2}, 9), 0.5, true);
  add("u8 ", {3, 1}, op.draw.mask({2}), 255);
  add("u8 ", {3, 1}, op.draw.mask({2}), -1, true);
  op.refuse({"f32", "u8"}, [=] { behind ? where(reals({2}), reals({2}), 0) : where(reals({2}), 0, reals({2})); });
  return op;
}

OpCase isclose_row() {
  OpCase op = row_of("Comparisons and choice", "isclose",
                     "(a, b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false)",
                     "1 where a = b or |a - b| <= atol + rtol |b|");
  op.differentiable = false;
  const auto add = [&](const char* label, const Array& a, const Array& b, double rtol, double atol, bool nan) {
    op.add(
          text(label, "rtol ", rtol, " atol ", atol, nan ? " equal_nan" : ""), {a, b},
          [=](const Tensor& x, const Tensor& y) { return isclose(x, y, rtol, atol, nan); },
          [=](const Array& x, const Array& y) {
            return tabulate(
                broadcast(x.shape, y.shape),
                [&](const Dims& i) {
                  const double p = x.stretched(i), q = y.stretched(i);
                  if (std::isnan(p) || std::isnan(q)) return nan && std::isnan(p) && std::isnan(q);
                  return p == q || (std::isfinite(q) && std::fabs(p - q) <= atol + rtol * std::fabs(q));
                },
                Kind::mask);
          })
        .large = a.shape == kLarge;
  };
  for (const auto& [a, b] : shape_pairs()) add("", op.draw.index(a, 5), op.draw.index(b, 5), 0.25, 0.5, false);
  for (const auto& [a, b] : shape_pairs()) add("", op.draw.normal(a), op.draw.normal(b), 0.5, 0.25, false);
  add("", op.draw.normal(kLarge), op.draw.normal({1001}), 0.5, 0.25, false);
  add("u8 ", op.draw.mask({5, 7}), op.draw.mask({7}), 0, 0, false);
  Array special({6, 1});
  special.v = {NAN, HUGE_VAL, -HUGE_VAL, 0, 1, 3e38};
  const Array across = tabulate({6}, [&](const Dims& i) { return special.v[i[0]]; });
  for (bool nan : {false, true}) add("special values ", special, across, 0.5, 0, nan);
  op.refuse({"[2, 3]", "[2]"}, [] { isclose(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "i64"}, [] { isclose(reals({2}), integers({2})); });
  return op;
}

}  // namespace

std::vector<OpCase> comparison_cases() {
  std::vector<OpCase> all = rows(ops::Comparison{});
  for (OpCase& op : number_rows(ops::List<ops::Eq, ops::Ne, ops::Lt, ops::Le, ops::Gt, ops::Ge>{}))
    all.push_back(std::move(op));
  all.push_back(logical_not_row());
  all.push_back(where_row());
  all.push_back(where_number_row(true));
  all.push_back(where_number_row(false));
  all.push_back(isclose_row());
  return all;
}

}  // namespace isonorm::test
