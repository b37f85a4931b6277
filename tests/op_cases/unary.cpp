// Rows of pointwise ops of one tensor. Name, formula, range and kinks come from the structs in
// core/formulas/pointwise.h. This file adds the public function and the formula in plain double code. An op of
// ops::Unary without an oracle() does not compile.
#include <cmath>
#include <numbers>

#include "autograd/ops/pointwise.h"
#include "core/formulas/pointwise.h"
#include "tests/op_cases/groups.h"
#include "tests/support/nearest_bf16.h"

namespace isonorm::test {
namespace {

struct Oracle {
  std::function<Tensor(const Tensor&, const double* p)> call;
  std::function<double(double x, const double* p)> value;
  std::string parameters = "(x)";
  std::vector<std::vector<double>> numbers = {};  // arguments to test with; empty: the op takes none
  Tolerance tolerance = tolerance::elementary;
  std::vector<double> kinks = {};  // in addition to Op::kink
};

Oracle plain(Tensor (*call)(const Tensor&), double (*value)(double)) {
  return {[call](const Tensor& x, const double*) { return call(x); },
          [value](double x, const double*) { return value(x); }};
}

Oracle oracle(ops::Neg) {
  return plain(isonorm::neg, [](double x) { return -x; });
}
Oracle oracle(ops::Abs) { return plain(isonorm::abs, std::fabs); }
Oracle oracle(ops::Sign) {
  return plain(isonorm::sign, [](double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); });
}
Oracle steps(Tensor (*call)(const Tensor&), double (*value)(double), double first) {
  Oracle o = plain(call, value);
  o.tolerance = tolerance::exact;
  for (double k = first; k <= 3; ++k) o.kinks.push_back(k);
  return o;
}
Oracle oracle(ops::Floor) { return steps(isonorm::floor, std::floor, -3); }
Oracle oracle(ops::Ceil) { return steps(isonorm::ceil, std::ceil, -3); }
Oracle oracle(ops::Round) {
  const auto nearest = [](double x) {
    const double low = std::floor(x), over = x - low;
    return over < 0.5 || (over == 0.5 && std::fmod(low, 2) == 0) || std::isinf(x) ? low : low + 1;
  };
  return steps(isonorm::round, nearest, -2.5);
}
Oracle oracle(ops::Exp2) { return plain(isonorm::exp2, std::exp2); }
Oracle oracle(ops::Log2) { return plain(isonorm::log2, std::log2); }
Oracle oracle(ops::Exp) { return plain(isonorm::exp, std::exp); }
Oracle oracle(ops::Expm1) { return plain(isonorm::expm1, std::expm1); }
Oracle oracle(ops::Log) { return plain(isonorm::log, std::log); }
Oracle oracle(ops::Log1p) { return plain(isonorm::log1p, std::log1p); }
Oracle oracle(ops::Sqrt) { return plain(isonorm::sqrt, std::sqrt); }
Oracle oracle(ops::Rsqrt) {
  return plain(isonorm::rsqrt, [](double x) { return 1 / std::sqrt(x); });
}
Oracle oracle(ops::Square) {
  return plain(isonorm::square, [](double x) { return x * x; });
}
Oracle oracle(ops::Reciprocal) {
  return plain(isonorm::reciprocal, [](double x) { return 1 / x; });
}
Oracle oracle(ops::Sin) { return plain(isonorm::sin, std::sin); }
Oracle oracle(ops::Cos) { return plain(isonorm::cos, std::cos); }
Oracle oracle(ops::Tanh) { return plain(isonorm::tanh, std::tanh); }
Oracle oracle(ops::Sigmoid) {
  return plain(isonorm::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); });
}
Oracle oracle(ops::Relu) {
  return plain(isonorm::relu, [](double x) { return x < 0 ? 0 : x; });
}
// x (1 + erf(x / sqrt 2)) / 2 without its cancellation at negative x; and the tanh form by 1 + tanh u = 2 / (1 +
// e^-2u). In long double, since both enlarge errors of their arguments.
Oracle oracle(ops::Gelu) {
  return plain(isonorm::gelu, [](double x) {
    return x == -HUGE_VAL ? 0 : static_cast<double>(x / 2 * std::erfc(-x / std::numbers::sqrt2_v<long double>));
  });
}
Oracle oracle(ops::GeluTanh) {
  Oracle o = plain(isonorm::gelu_tanh, [](double v) {
    const long double x = v, u = std::sqrt(2 / std::numbers::pi_v<long double>) * (x + 0.044715L * x * x * x);
    return v == -HUGE_VAL ? 0 : static_cast<double>(x / (1 + std::exp(-2 * u)));
  });
  o.tolerance = tolerance::reduction;  // at very negative x an error of u is multiplied by u
  return o;
}
Oracle oracle(ops::Silu) {
  return plain(isonorm::silu, [](double x) { return x / (1 + std::exp(-x)); });
}
Oracle oracle(ops::Softplus) {
  return plain(isonorm::softplus, [](double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); });
}
Oracle oracle(ops::Erf) { return plain(isonorm::erf, std::erf); }

// Ops with number arguments, after or before the tensor.
using Numbered = Tensor (*)(const Tensor& x, const double* p);
using NumberedValue = double (*)(double x, const double* p);
Oracle numbered(const char* parameters, std::vector<std::vector<double>> numbers, Numbered call, NumberedValue value) {
  return {call, value, parameters, std::move(numbers)};
}

Oracle oracle(ops::LeakyRelu) {
  return numbered(
      "(x, double slope = 0.01)", {{0.01}, {0.5}}, [](const Tensor& x, const double* p) { return leaky_relu(x, *p); },
      [](double x, const double* p) { return x > 0 ? x : *p * x; });
}
Oracle oracle(ops::Clamp) {
  return numbered(
      "(x, Scalar lo, Scalar hi)", {{-1, 0.5}, {-HUGE_VAL, 1}, {-2, HUGE_VAL}},
      [](const Tensor& x, const double* p) { return clamp(x, p[0], p[1]); },
      [](double x, const double* p) { return std::isnan(x) ? x : std::fmin(std::fmax(x, p[0]), p[1]); });
}
Oracle oracle(ops::PowNumber) {
  return numbered(
      "(x, double p)", {{2}, {0.5}, {-1}, {0}, {2.5}}, [](const Tensor& x, const double* p) { return pow(x, *p); },
      [](double x, const double* p) { return std::pow(x, *p); });
}
Oracle oracle(ops::AddNumber) {
  return numbered(
      "(a, Scalar b)", {{0.5}, {-2}}, [](const Tensor& x, const double* p) { return *p < 0 ? x + *p : *p + x; },
      [](double x, const double* p) { return x + *p; });
}
Oracle oracle(ops::MulNumber) {
  return numbered(
      "(a, Scalar b)", {{0.5}, {-3}}, [](const Tensor& x, const double* p) { return *p < 0 ? x * *p : *p * x; },
      [](double x, const double* p) { return x * *p; });
}
Oracle oracle(ops::DivNumber) {
  return numbered(
      "(a, Scalar b)", {{4}, {-3}}, [](const Tensor& x, const double* p) { return x / *p; },
      [](double x, const double* p) { return x / *p; });
}
Oracle oracle(ops::NumberSub) {
  return numbered(
      "(Scalar a, b)", {{0.5}, {-2}}, [](const Tensor& x, const double* p) { return *p - x; },
      [](double x, const double* p) { return *p - x; });
}
Oracle oracle(ops::NumberDiv) {
  return numbered(
      "(Scalar a, b)", {{1}, {-3}}, [](const Tensor& x, const double* p) { return *p / x; },
      [](double x, const double* p) { return *p / x; });
}

void add_samples(OpCase& op, const Oracle& o, const std::vector<double>& p, double lo, double hi,
                 const std::vector<double>& kinks) {
  const auto run = [o, p](const Tensor& x) { return o.call(x, p.data()); };
  const auto reference = [o, p](Array y) {
    for (double& v : y.v) v = o.value(v, p.data());
    return y;
  };
  std::string label;
  for (double v : p) label += text(label.empty() ? "numbers " : ", ", v);
  for (const Dims& shape : shapes()) op.add(label, {op.draw.uniform(shape, lo, hi, kinks)}, run, reference);
  op.add(label, {op.draw.uniform(kLarge, lo, hi, kinks)}, run, reference).large = true;
  Array special({20});
  special.v = {0.0,  -0.0, 1e-30, -1e-30, 1e-5, -1e-5,    0.5,       -0.5, 1, 2.5,
               -1.0, 20,   -20,   100,    -100, HUGE_VAL, -HUGE_VAL, NAN,  3, -1.5};
  op.add(label + " special values", {special}, run, reference).gradient = false;
}

// The result's dtype for integer inputs: the input's dtype (u8 stays u8), i64, or f32.
enum class Integers { same, wide, real };

void add_integers(OpCase& op, const Oracle& o, const std::vector<double>& p, Integers result) {
  for (Kind kind : {Kind::index, Kind::mask}) {
    Array x = op.draw.index({5, 7}, 13);
    x.kind = kind;
    if (kind == Kind::index && result != Integers::real)
      for (double& v : x.v) v -= 6;
    op.add(
          text(kind == Kind::index ? "i64" : "u8", p.empty() ? "" : text(' ', p[0])), {x},
          [o, p](const Tensor& t) { return o.call(t, p.data()); },
          [=](Array y) {
            for (double& v : y.v) v = o.value(v, p.data());
            y.kind = result == Integers::real ? Kind::real : result == Integers::wide ? Kind::index : y.kind;
            if (result == Integers::real) y.dtype = DType::f32;
            return y;
          })
        .gradient = false;
  }
}

// Integers cannot be added to, subtracted from or multiplied by a fraction, nor have a remainder with one.
void refuse_fraction(OpCase& op, const Oracle& o) {
  op.refuse({"0.5", "i64"}, [o] { o.call(integers({2}), std::vector<double>{0.5}.data()); });
}

template <class Op, class... Others> constexpr bool is_one_of = (std::is_same_v<Op, Others> || ...);

template <class Op> OpCase unary_row() {
  const Oracle o = oracle(Op{});
  OpCase op = row_of("Pointwise, one tensor", Op::name, o.parameters, Op::formula, o.tolerance);
  op.draw = Draw(op.signature);
  std::vector<double> kinks = o.kinks;
  if constexpr (requires { Op::kink; }) kinks.push_back(Op::kink);
  if (o.numbers.empty()) add_samples(op, o, {}, Op::lo, Op::hi, kinks);
  for (const std::vector<double>& p : o.numbers)
    add_samples(op, o, p, Op::lo, Op::hi, std::is_same_v<Op, ops::Clamp> ? p : kinks);
  constexpr bool wide = is_one_of<Op, ops::Neg, ops::AddNumber, ops::MulNumber, ops::NumberSub>;
  constexpr bool same = is_one_of<Op, ops::Abs, ops::Sign, ops::Floor, ops::Ceil, ops::Round, ops::Square, ops::Relu>;
  if constexpr (std::is_same_v<Op, ops::Clamp>) {
    add_integers(op, o, {-3, 2}, Integers::same);
    add_integers(op, o, {-0.5, 2}, Integers::real);
    op.refuse({"clamp: lower bound 2", "1"}, [] { clamp(reals({2}), 2, 1); });
    op.refuse({"[256, 300]", "u8"}, [] { clamp(reals({2}, DType::u8), 256, 300); });
  } else if constexpr (std::is_same_v<Op, ops::PowNumber>) {
    for (double p : {0.0, 1.0, 2.0}) add_integers(op, o, {p}, Integers::same);
    add_integers(op, o, {0.5}, Integers::real);
  } else {
    const double p = std::is_same_v<Op, ops::LeakyRelu> ? 0.5 : -3;
    add_integers(op, o, o.numbers.empty() ? std::vector<double>{} : std::vector{p},
                 wide   ? Integers::wide
                 : same ? Integers::same
                        : Integers::real);
  }
  if (wide && !o.numbers.empty()) refuse_fraction(op, o);
  op.zero = is_one_of<Op, ops::Sign, ops::Floor, ops::Ceil, ops::Round>;
  op.refuses = !op.bad.empty();
  return op;
}

template <class... Ops> std::vector<OpCase> rows(ops::List<Ops...>) { return {unary_row<Ops>()...}; }

// Public functions without a struct of their own.
using Call = Tensor (*)(const Tensor& x, double p);
using Value = double (*)(double x, double p);

struct NumberRow {
  const char *name, *parameters, *formula;
  Call call;
  Value value;
  Tolerance tolerance = tolerance::exact;
  bool kinked = true;  // x has a kink at the number
  double lo = -3;
};

OpCase number_row(const NumberRow& n) {
  OpCase op = row_of("Pointwise, one tensor", n.name, n.parameters, n.formula, n.tolerance);
  op.draw = Draw(op.signature);
  const Oracle o{[=](const Tensor& x, const double* p) { return n.call(x, *p); },
                 [=](double x, const double* p) { return n.value(x, *p); }, n.parameters};
  for (double p : {0.5, n.lo < 0 ? -2.0 : 2.0, 0.0})
    add_samples(op, o, {p}, n.lo, 3, n.kinked ? std::vector{p} : std::vector<double>{});
  add_integers(op, o, {2}, op.name == "pow" ? Integers::real : op.name == "sub" ? Integers::wide : Integers::same);
  if (op.name == "clamp_min") op.refuse({"[300, inf]", "u8"}, [] { clamp_min(reals({2}, DType::u8), 300); });
  if (op.name == "clamp_max") op.refuse({"[-inf, -1]", "u8"}, [] { clamp_max(reals({2}, DType::u8), -1); });
  if (op.name != "pow" && !op.name.starts_with("clamp")) refuse_fraction(op, o);
  op.refuses = !op.bad.empty();
  return op;
}

OpCase remainder_row() {
  OpCase op = row_of("Pointwise, one tensor", "remainder", "(a, Scalar b)",
                     "a - b floor(a/b), as with a tensor of the number", tolerance::elementary);
  const Oracle o = numbered(
      "(a, Scalar b)", {}, [](const Tensor& x, const double* p) { return x % *p; },
      [](double x, const double* p) { return x - *p * std::floor(x / *p); });
  op.draw = Draw(op.signature);
  add_samples(op, o, {2.5}, 0.1, 2.4, {});
  add_samples(op, o, {-4}, 0.2, 3, {});
  add_integers(op, o, {3}, Integers::same);
  refuse_fraction(op, o);
  return op;
}

std::vector<OpCase> number_rows() {
  const Value smaller = [](double x, double p) { return p < x ? p : x; },
              larger = [](double x, double p) { return p > x ? p : x; };
  const char *const number_behind = "(a, Scalar b)", *const number_first = "(Scalar a, b)",
                    *const least = "the smaller of a and b, as with a tensor of the number",
                    *const most = "the larger of a and b, as with a tensor of the number";
  const NumberRow all[] = {
      {"sub", number_behind, "a - b", [](const Tensor& x, double p) { return x - p; },
       [](double x, double p) { return x - p; }, tolerance::rounded, false},
      {"minimum", number_behind, least, [](const Tensor& x, double p) { return minimum(x, p); }, smaller},
      {"minimum", number_first, least, [](const Tensor& x, double p) { return minimum(p, x); }, smaller},
      {"maximum", number_behind, most, [](const Tensor& x, double p) { return maximum(x, p); }, larger},
      {"maximum", number_first, most, [](const Tensor& x, double p) { return maximum(p, x); }, larger},
      {"clamp_min", "(x, Scalar lo)", "x where x > lo, lo elsewhere, as clamp(x, lo, infinity)",
       [](const Tensor& x, double p) { return clamp_min(x, p); }, larger},
      {"clamp_max", "(x, Scalar hi)", "x where x < hi, hi elsewhere, as clamp(x, -infinity, hi)",
       [](const Tensor& x, double p) { return clamp_max(x, p); }, smaller},
      {"pow", "(double a, b)", "a^b; at a = 0 the derivative is 0 where b >= 0",
       [](const Tensor& x, double p) { return pow(p, x); }, [](double x, double p) { return std::pow(p, x); },
       tolerance::elementary, false, 0.3}};
  std::vector<OpCase> rows;
  for (const NumberRow& n : all) rows.push_back(number_row(n));
  return rows;
}

OpCase log_sigmoid_row() {
  OpCase op = row_of("Pointwise, one tensor", "log_sigmoid", "(x)", "ln(1/(1 + e^-x))", tolerance::elementary);
  op.refuses = false;
  const Oracle o = numbered(
      "(x)", {}, [](const Tensor& x, const double*) { return log_sigmoid(x); },
      [](double x, const double*) { return (x > 0 ? 0 : x) - std::log1p(std::exp(-std::fabs(x))); });
  add_samples(op, o, {}, -4, 4, {});
  add_integers(op, o, {}, Integers::real);
  return op;
}

OpCase cast_row() {
  OpCase op =
      row_of("Pointwise, one tensor", "to", "(x, DType dtype)",
             "x in another dtype: rounded once, to nearest even; to integers, truncated, and of no defined value "
             "where that does not "
             "fit or x is NaN");
  op.refuses = false;
  const auto reference = [](DType to) {
    return [to](Array y) {
      y.dtype = to;
      for (double& v : y.v)
        v = to == DType::f64 ? v : to == DType::f32 ? float(v) : to == DType::bf16 ? nearest_bf16(v) : std::trunc(v);
      return y;
    };
  };
  for (DType to : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8}) {
    const auto run = [to](const Tensor& x) { return x.to(to); };
    for (const Dims& shape : shapes_and_large()) {
      Sample& s = op.add(text("to ", to), {op.draw.uniform(shape, is_floating(to) ? -3 : 0, 100)}, run, reference(to));
      s.large = shape == kLarge, s.gradient = to == DType::f64;
      if (shape != kLarge)
        op.add(text("i64 to ", to), {op.draw.index(shape, 200)}, run, reference(to)).gradient = false;
    }
  }
  return op;
}

OpCase classification_row(const char* name, const char* formula, Tensor (*call)(const Tensor&), bool (*is)(double)) {
  OpCase op = row_of("Comparisons and choice", name, "(x)", formula);
  op.differentiable = op.refuses = false;
  const auto add = [&](const char* label, const Array& x) -> Sample& {
    return op.add(label, {x}, call, [is](Array y) {
      y.kind = Kind::mask;
      for (double& v : y.v) v = is(v);
      return y;
    });
  };
  for (const Dims& shape : shapes_and_large()) {
    Array x = op.draw.normal(shape);
    for (size_t i = 0; i < x.v.size(); i += 3) x.v[i] = i % 2 ? HUGE_VAL : i % 4 ? -HUGE_VAL : NAN;
    add("", x).large = shape == kLarge;
  }
  add("i64", op.draw.index({5, 7}, 9)), add("u8", op.draw.mask({5, 7}));
  return op;
}

}  // namespace

std::vector<OpCase> unary_cases() {
  std::vector<OpCase> all = rows(ops::Unary{});
  for (OpCase& op : number_rows()) all.push_back(std::move(op));
  all.push_back(remainder_row());
  all.push_back(log_sigmoid_row());
  all.push_back(cast_row());
  all.push_back(classification_row("isfinite", "1 where x is neither infinite nor NaN", isonorm::isfinite,
                                   [](double x) { return std::isfinite(x); }));
  all.push_back(
      classification_row("isinf", "1 where x is infinite", isonorm::isinf, [](double x) { return std::isinf(x); }));
  all.push_back(
      classification_row("isnan", "1 where x is NaN", isonorm::isnan, [](double x) { return std::isnan(x); }));
  return all;
}

}  // namespace isonorm::test
