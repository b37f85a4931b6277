// Rows of pointwise ops of two tensors, and of where(). An op of ops::Binary without an oracle() does not compile.
#include <cmath>
#include <functional>

#include "autograd/ops/pointwise.h"
#include "core/formulas/pointwise.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Oracle {
  Tensor (*call)(const Tensor&, const Tensor&);
  std::function<double(double, double)> value;
  std::string formula;
  double lo = -3, hi = 3;
  double lo_b = -3, hi_b = 3;
  bool distinct = false;  // a and b never tie
};

Oracle oracle(ops::Add) { return {isonorm::add, std::plus<>(), "a + b"}; }
Oracle oracle(ops::Sub) { return {isonorm::sub, std::minus<>(), "a - b"}; }
Oracle oracle(ops::Mul) { return {isonorm::mul, std::multiplies<>(), "a b"}; }
Oracle oracle(ops::Div) { return {isonorm::div, std::divides<>(), "a/b", -3, 3, 0.4, 2.5}; }
Oracle oracle(ops::Pow) {
  return {isonorm::pow,
          [](double a, double b) { return std::pow(a, b); },
          "a^b; at a = 0 the derivative by b is 0 where b >= 0",
          0.3,
          3,
          -2,
          2};
}
Oracle choice(Tensor (*call)(const Tensor&, const Tensor&), double (*value)(double, double), const char* which) {
  const char* const rest = "NaN where either is; ties share the gradient, at NaN both take it";
  return {call, value, text("the ", which, " of a and b, ", rest), -3, 3, -3, 3, true};
}
Oracle oracle(ops::Minimum) {
  return choice(
      isonorm::minimum, [](double a, double b) { return a < b ? a : b; }, "smaller");
}
Oracle oracle(ops::Maximum) {
  return choice(
      isonorm::maximum, [](double a, double b) { return a < b ? b : a; }, "larger");
}

Oracle oracle(ops::Remainder) {  // in the samples with gradients a lies between -b and 0
  return {isonorm::remainder,
          [](double a, double b) { return a - b * std::floor(a / b); },
          "a - b floor(a/b), of b's sign; of integers by 0 it is 0",
          -2,
          -0.2,
          2.2,
          3};
}

// Integers, and integers combined with floating-point tensors. Quotients are f32.
template <class Op> void add_integers(OpCase& op, const Oracle& o) {
  constexpr bool quotient = std::is_same_v<Op, ops::Div>, remainder = std::is_same_v<Op, ops::Remainder>;
  constexpr bool stays = !quotient && !std::is_same_v<Op, ops::Add> && !std::is_same_v<Op, ops::Sub>;  // u8 stays u8
  const auto add = [&](const char* label, const Arrays& x, Kind kind) -> Sample& {
    Sample& s = op.add(label, x, o.call, [=](const Array& a, const Array& b) {
      const auto at = [&](const Dims& i) {
        const double p = a.stretched(i), q = b.stretched(i), v = remainder && q == 0 ? 0 : o.value(p, q);
        return quotient && kind == Kind::index ? double{static_cast<float>(v)} : v;
      };
      Array y = tabulate(broadcast(a.shape, b.shape), at, kind);
      if (a.kind == Kind::mask && b.kind == Kind::mask && kind == Kind::index && stays) y.kind = Kind::mask;
      if (quotient && kind == Kind::index) y.kind = Kind::real, y.dtype = DType::f32;
      return y;
    });
    s.gradient = kind == Kind::real;
    return s;
  };
  const auto integers = [&](const Dims& shape) {
    Array x = op.draw.index(shape, 41);
    for (double& v : x.v) v -= 20;
    return x;
  };
  const auto positive = [&](const Dims& shape) {
    Array x = op.draw.index(shape, 4);
    for (double& v : x.v) v += 1;
    return x;
  };
  add("i64 before", {positive({5, 7}), op.draw.uniform({7}, o.lo_b, o.hi_b)}, Kind::real).gradient = false;
  add("i64 behind", {op.draw.uniform({5, 7}, o.lo, o.hi), positive({7})}, Kind::real).gradient = false;
  if (std::is_same_v<Op, ops::Pow>) return;
  for (const auto& [a, b] : shape_pairs()) add("i64", {integers(a), integers(b)}, Kind::index);
  add("i64", {integers(kLarge), integers({1001})}, Kind::index).large = true;
  add("u8 both", {op.draw.mask({5, 7}), op.draw.mask({7})}, Kind::index);
  add("u8 and i64", {op.draw.mask({5, 7}), integers({7})}, Kind::index);
  add("u8", {op.draw.mask({5, 7}), op.draw.uniform({7}, o.lo_b, o.hi_b)}, Kind::real);
}

template <class Op> OpCase binary_row() {
  const Oracle o = oracle(Op{});
  OpCase op = row_of("Pointwise, two tensors", Op::name, "(a, b)", o.formula, tolerance::elementary);
  op.draw = Draw(op.signature);
  const auto run = o.call;
  const auto reference = [o](const Array& a, const Array& b) {
    return tabulate(broadcast(a.shape, b.shape),
                    [&](const Dims& i) { return o.value(a.stretched(i), b.stretched(i)); });
  };
  const auto inputs = [&](const Dims& a, const Dims& b) {
    Arrays x = {op.draw.uniform(a, o.lo, o.hi), op.draw.uniform(b, o.lo_b, o.hi_b)};
    if (o.distinct) {
      x = {op.draw.distinct(a), op.draw.distinct(b)};
      for (double& v : x[1].v) v += 0.05;  // between the values of a
    }
    return x;
  };
  for (const auto& [a, b] : shape_pairs()) op.add("", inputs(a, b), run, reference);
  op.add("", inputs(kLarge, kLarge), run, reference).large = true;
  op.add("", inputs(kLarge, {1001}), run, reference).large = true;
  op.refuse({"[2, 3]", "[2]"}, [o] { o.call(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "f64"}, [o] { o.call(reals({2}), reals({2}, DType::f64)); });
  if (std::is_same_v<Op, ops::Pow>) op.refuse({"i64", "floating"}, [o] { o.call(integers({2}), integers({2})); });
  add_integers<Op>(op, o);
  return op;
}

template <class... Ops> std::vector<OpCase> rows(ops::List<Ops...>) { return {binary_row<Ops>()...}; }

}  // namespace

std::vector<OpCase> binary_cases() { return rows(ops::Binary{}); }

}  // namespace isonorm::test
