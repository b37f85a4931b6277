// Rows of the comparisons and of where().
#include <functional>

#include "autograd/ops/pointwise.h"
#include "core/formulas/pointwise.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Oracle {
  Tensor (*call)(const Tensor&, const Tensor&);
  Tensor (*with_number)(const Tensor&, double);
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

// Small whole numbers, so that all three outcomes occur.
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
  Array special({4, 1});
  special.v = {NAN, HUGE_VAL, -HUGE_VAL, 0};
  op.add("special values", {special, tabulate({4}, [&](const Dims& i) { return special.v[i[0]]; })}, run, reference);
  op.add("", {whole(op.draw, kLarge, Kind::real), whole(op.draw, {17, 1}, Kind::real)}, run, reference).large = true;
  op.refuse({"[2, 3]", "[2]"}, [o] { o.call(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "i64"}, [o] { o.call(reals({2}), integers({2})); });
  return op;
}

template <class Op> OpCase comparison_number_row() {
  const Oracle o = oracle(Op{});
  OpCase op = row(Op::name, "(a, double b)", o);
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
  op.refuse({"0.5", "i64"}, [o] { o.with_number(integers({2}), 0.5); });
  op.refuse({"nan", "i64"}, [o] { o.with_number(integers({2}), NAN); });
  for (double b : {-1.0, 256.0}) op.refuse({text(b), "u8"}, [o, b] { o.with_number(reals({2}, DType::u8), b); });
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
  op.refuse({"f32", "u8"}, [] { where(reals({2}), reals({2}), reals({2})); });
  op.refuse({"f32", "f64"}, [] { where(reals({2}, DType::u8), reals({2}), reals({2}, DType::f64)); });
  op.refuse({"[2]", "[3]"}, [] { where(reals({2}, DType::u8), reals({2}), reals({3})); });
  return op;
}

}  // namespace

std::vector<OpCase> comparison_cases() {
  std::vector<OpCase> all = rows(ops::Comparison{});
  for (OpCase& op : number_rows(ops::List<ops::Eq, ops::Ne, ops::Lt, ops::Le, ops::Gt, ops::Ge>{}))
    all.push_back(std::move(op));
  all.push_back(logical_not_row());
  all.push_back(where_row());
  return all;
}

}  // namespace isonorm::test
