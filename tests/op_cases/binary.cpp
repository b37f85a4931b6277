// Rows of the pointwise ops of two tensors, and of the choice between two. An op of ops::Binary without an oracle()
// does not compile.
#include <cmath>

#include "autograd/ops/pointwise.h"
#include "core/formulas/pointwise.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Oracle {
  Tensor (*call)(const Tensor&, const Tensor&);
  double (*value)(double, double);
  std::string formula;
  double lo = -3, hi = 3;
  double lo_b = -3, hi_b = 3;
  bool distinct = false;  // a and b never tie
};

Oracle oracle(ops::Add) {
  return {isonorm::add, [](double a, double b) { return a + b; }, "a + b"};
}
Oracle oracle(ops::Sub) {
  return {isonorm::sub, [](double a, double b) { return a - b; }, "a - b"};
}
Oracle oracle(ops::Mul) {
  return {isonorm::mul, [](double a, double b) { return a * b; }, "a b"};
}
Oracle oracle(ops::Div) {
  return {isonorm::div, [](double a, double b) { return a / b; }, "a/b", -3, 3, 0.4, 2.5};
}
Oracle oracle(ops::Pow) {
  return {isonorm::pow, std::pow, "a^b; at a = 0 the derivative by b is 0 where b >= 0", 0.3, 3, -2, 2};
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

template <class Op> OpCase binary_row() {
  const Oracle o = oracle(Op{});
  OpCase op{
      .name = Op::name, .group = "Pointwise, two tensors", .signature = text(Op::name, "(a, b)"), .formula = o.formula};
  Draw draw(op.signature);
  const auto run = [o](const Tensors& x) { return o.call(x[0], x[1]); };
  const auto reference = [o](const Arrays& x) {
    return tabulate(broadcast(x[0].shape, x[1].shape),
                    [&](const Dims& i) { return o.value(x[0].stretched(i), x[1].stretched(i)); });
  };
  const auto inputs = [&](const Dims& a, const Dims& b) {
    Arrays x = {draw.uniform(a, o.lo, o.hi), draw.uniform(b, o.lo_b, o.hi_b)};
    if (o.distinct) {
      x = {draw.distinct(a), draw.distinct(b)};
      for (double& v : x[1].v) v += 0.05;  // between the values of a
    }
    return x;
  };
  for (const auto& [a, b] : shape_pairs()) op.add("", inputs(a, b), run, reference);
  op.add("", inputs(kLarge, kLarge), run, reference).large = true;
  op.add("", inputs(kLarge, {1001}), run, reference).large = true;
  op.refuse({"[2, 3]", "[2]"}, [o] { o.call(reals({2, 3}), reals({2})); });
  op.refuse({"f32", "f64"}, [o] { o.call(reals({2}), reals({2}, DType::f64)); });
  op.refuse({"i64"}, [o] { o.call(integers({2}), integers({2})); });
  return op;
}

template <class... Ops> std::vector<OpCase> rows(ops::List<Ops...>) { return {binary_row<Ops>()...}; }

}  // namespace

std::vector<OpCase> binary_cases() { return rows(ops::Binary{}); }

}  // namespace isonorm::test
