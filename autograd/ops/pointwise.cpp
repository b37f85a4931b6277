#include "autograd/ops/pointwise.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "core/kernels/copy.h"
#include "core/kernels/pointwise.h"
#include "core/view.h"

namespace isonorm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Op, class... Others> constexpr bool kIsOneOf = (std::is_same_v<Op, Others> || ...);

// dy/dx of an op, computed by ops from the tensor that its rule saves, so that it can be differentiated again. Gates
// and ops that save nothing have piecewise constant slopes, through which no gradient flows: the kernel computes them.
// If df (core/formulas/pointwise.h) consists of + - * / and whole numbers, it takes tensors. Other ops have an overload
// below.
template <class Op> Tensor slope(Op, const Tensor& saved, kernels::Numbers numbers) {
  if constexpr (Op::saves == ops::Saves::nothing || requires { Op::gate; }) {
    const Tensor one = ones_like(saved), s = empty_like(saved);
    kernels::unary_backward.on(s.device(), ops::index_in<Op>(ops::Unary{}), s, one, saved, numbers);
    return s;
  } else {
    return Op::df(saved);
  }
}
Tensor slope(ops::Exp2, const Tensor& y, kernels::Numbers) { return y * std::numbers::ln2; }
Tensor slope(ops::Log2, const Tensor& x, kernels::Numbers) { return std::numbers::log2e / x; }
Tensor slope(ops::Sqrt, const Tensor& y, kernels::Numbers) { return 0.5 / y; }
Tensor slope(ops::Rsqrt, const Tensor& y, kernels::Numbers) { return -0.5 * y * y * y; }
Tensor slope(ops::Sin, const Tensor& x, kernels::Numbers) { return cos(x); }
Tensor slope(ops::Cos, const Tensor& x, kernels::Numbers) { return -sin(x); }
Tensor slope(ops::Softplus, const Tensor& x, kernels::Numbers) { return sigmoid(x); }
Tensor slope(ops::Erf, const Tensor& x, kernels::Numbers) { return 2 * std::numbers::inv_sqrtpi * exp(-x * x); }
Tensor slope(ops::NumberDiv, const Tensor& x, kernels::Numbers n) { return -(n.p[0] / x) / x; }
Tensor slope(ops::PowNumber, const Tensor& x, kernels::Numbers n) {
  return n.p[0] == 0 ? zeros_like(x) : n.p[0] * pow(x, n.p[0] - 1);
}
Tensor slope(ops::Silu, const Tensor& x, kernels::Numbers) {
  const Tensor s = sigmoid(x);
  return s * (1 + x * (1 - s));
}
// Phi(x) + x phi(x): distribution and density of the standard normal.
Tensor slope(ops::Gelu, const Tensor& x, kernels::Numbers) {
  constexpr double root = std::numbers::sqrt2 / 2, density = root * std::numbers::inv_sqrtpi;
  return 0.5 * (1 + erf(root * x)) + density * x * exp(-0.5 * x * x);
}
// x (1 + tanh u)/2 with u = c (x + a x^3); (1 + tanh u)/2 is the sigmoid of 2 u.
Tensor slope(ops::GeluTanh, const Tensor& x, kernels::Numbers) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, a = 0.044715;
  const Tensor s = sigmoid(2 * c * (x + a * x * x * x));
  return s + 2 * c * x * s * (1 - s) * (1 + 3 * a * x * x);
}

Tensor number(Scalar value, TensorOptions options) {
  Tensor t = empty({}, options);
  fill(t, value);
  return t;
}
Tensor number(Scalar value, const Tensor& like) { return number(value, like.options()); }

template <class Op, Saved (*keep)(const Tensor&) = save>
Tensor unary(const Tensor& x, kernels::Numbers numbers = {}, const char* name = Op::name) {
  constexpr int op = ops::index_in<Op>(ops::Unary{});
  if (!is_floating(x.dtype())) return unary<Op, keep>(detached::to(x, DType::f32), numbers, name);
  Tensor y = empty_like(x);
  kernels::unary.on(x.device(), op, y, x, numbers);
  if (auto* n = track(name, {&y}, {&x})) {
    Saved saved = Op::saves == ops::Saves::input ? keep(x) : Op::saves == ops::Saves::output ? keep(y) : Saved();
    n->backward = differentiable([saved = std::move(saved), numbers](Flow& g) {
      const Tensor& dy = g.out();
      const bool unsaved = Op::saves == ops::Saves::nothing;
      if (grad_enabled()) {
        const DType wide = acc_dtype(dy.dtype());  // a slope is several ops, and each would round to bf16
        const Tensor s = slope(Op{}, to(unsaved ? detach(dy) : saved.get(), wide), numbers), dx = to(dy, wide) * s;
        return g.give(0, ops::closes<Op>(numbers.p) ? where(eq(s, 0), number(0, dx), dx) : dx);
      }
      Tensor dx = g.reuse();
      kernels::unary_backward.on(dy.device(), op, dx, dy, unsaved ? dy : saved.get(), numbers);
      g.give(0, std::move(dx));
    });
  }
  return y;
}

template <class Op> Tensor activation(const Tensor& x, kernels::Numbers numbers = {}) {
  return unary<Op, save_activation>(x, numbers);
}

constexpr bool is_integer(DType d) { return !is_floating(d); }

// The common dtype of a and b: an integer dtype is promoted to a floating one, u8 to i64. Throws if two floating dtypes
// differ.
DType promoted_dtype(const char* op, const Tensor& a, const Tensor& b) {
  const DType d = a.dtype(), e = b.dtype();
  check(d == e || is_integer(d) || is_integer(e), op, ": dtypes ", d, " and ", e, " differ");
  return is_floating(d) ? d : is_floating(e) || d == DType::u8 ? e : d;
}

template <class Op> Tensor binary(const Tensor& a, const Tensor& b) {
  check_same_device(Op::name, a, b);
  const DType both = promoted_dtype(Op::name, a, b);
  check(!kIsOneOf<Op, ops::Pow> || is_floating(both), Op::name, ": dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected a floating one");
  const DType computed = is_floating(both) ? both : kIsOneOf<Op, ops::Div> ? DType::f32 : DType::i64;
  const Tensor x = detached::to(a, computed), y = detached::to(b, computed);
  Tensor out = empty(broadcast_shapes(x.shape(), y.shape(), Op::name), x.options());
  kernels::binary.on(x.device(), ops::index_in<Op>(ops::Binary{}), out, x, y);
  // A sum or difference of u8 may leave its range. The product of two masks is a mask.
  constexpr bool stays = kIsOneOf<Op, ops::Mul, ops::Minimum, ops::Maximum, ops::Remainder>;
  return stays ? detached::to(out, both) : out;
}

template <class Op> Tensor compare(const Tensor& a, const Tensor& b) {
  check_same_device(Op::name, a, b);
  const DType both = promoted_dtype(Op::name, a, b);
  Tensor out = empty(broadcast_shapes(a.shape(), b.shape(), Op::name), {DType::u8, a.device()});
  kernels::compare.on(a.device(), ops::index_in<Op>(ops::Comparison{}), out, detached::to(a, both),
                      detached::to(b, both));
  return out;
}

bool holds(DType d, Scalar value) {
  return is_floating(d) || (value.integer() && (d == DType::i64 || (value >= 0 && value <= 255)));
}

// A number to compare or choose with: in x's dtype if it can hold the number, else in `otherwise`.
Tensor beside(const Tensor& x, Scalar b, DType otherwise) {
  return number(b, {holds(x.dtype(), b) ? x.dtype() : otherwise, x.device()});
}

template <class Op> Tensor compare(const Tensor& a, Scalar b) {
  if (is_integer(a.dtype()) && b >= 0x1p63 && !b.integer()) b = kInfinity;  // f64 rounds the largest integers to 2^63
  return compare<Op>(a, beside(a, b, DType::f64));
}

// `b` in i64: integers are computed in i64.
Tensor whole(Scalar b, const Tensor& beside, const char* op) {
  check(holds(DType::i64, b), op, ": ", b, " is not a whole number, the tensor is ", beside.dtype());
  return number(b, {DType::i64, beside.device()});
}

Tensor operand(Scalar b, const Tensor& beside, const char* op) {
  return holds(beside.dtype(), b) ? number(b, beside) : whole(b, beside, op);
}

// Gradients of a and b: half to each at a tie, none to the loser; if one is NaN, both get the whole gradient.
template <class Op> Tensor extremum(const Tensor& a, const Tensor& b) {
  Tensor out = binary<Op>(a, b);
  if (auto* n = track(Op::name, {&out}, {&a, &b}))
    n->backward = differentiable([a = save(a), b = save(b)](Flow& g) {
      const Tensor half = mul(g.out(), 0.5), zero = number(0, half);
      for (int i : {0, 1}) {
        if (!g.wants(i)) continue;
        const Tensor mine = i == 0 ? a.get() : b.get(), other = i == 0 ? b.get() : a.get();
        const Tensor loses = std::is_same_v<Op, ops::Maximum> ? lt(mine, other) : gt(mine, other);
        g.give(i, where(loses, zero, where(eq(mine, other), half, g.out())));
      }
    });
  return out;
}

}  // namespace

Tensor neg(const Tensor& x) { return is_integer(x.dtype()) ? sub(0, x) : unary<ops::Neg>(x); }
Tensor abs(const Tensor& x) {
  return is_integer(x.dtype()) ? detached::to(maximum(x, neg(x)), x.dtype()) : unary<ops::Abs>(x);
}
Tensor sign(const Tensor& x) {
  return is_integer(x.dtype()) ? detached::to(sub(gt(x, 0), lt(x, 0)), x.dtype()) : unary<ops::Sign>(x);
}
Tensor floor(const Tensor& x) { return is_integer(x.dtype()) ? detached::clone(x) : unary<ops::Floor>(x); }
Tensor ceil(const Tensor& x) { return is_integer(x.dtype()) ? detached::clone(x) : unary<ops::Ceil>(x); }
Tensor round(const Tensor& x) { return is_integer(x.dtype()) ? detached::clone(x) : unary<ops::Round>(x); }
Tensor exp(const Tensor& x) { return unary<ops::Exp>(x); }
Tensor exp2(const Tensor& x) { return unary<ops::Exp2>(x); }
Tensor expm1(const Tensor& x) { return unary<ops::Expm1>(x); }
Tensor log(const Tensor& x) { return unary<ops::Log>(x); }
Tensor log2(const Tensor& x) { return unary<ops::Log2>(x); }
Tensor log1p(const Tensor& x) { return unary<ops::Log1p>(x); }
Tensor sqrt(const Tensor& x) { return unary<ops::Sqrt>(x); }
Tensor rsqrt(const Tensor& x) { return unary<ops::Rsqrt>(x); }
Tensor square(const Tensor& x) { return is_integer(x.dtype()) ? mul(x, x) : unary<ops::Square>(x); }
Tensor reciprocal(const Tensor& x) { return unary<ops::Reciprocal>(x); }
Tensor sin(const Tensor& x) { return unary<ops::Sin>(x); }
Tensor cos(const Tensor& x) { return unary<ops::Cos>(x); }
Tensor tanh(const Tensor& x) { return activation<ops::Tanh>(x); }
Tensor sigmoid(const Tensor& x) { return activation<ops::Sigmoid>(x); }
Tensor relu(const Tensor& x) { return is_integer(x.dtype()) ? clamp_min(x, 0) : activation<ops::Relu>(x); }
Tensor leaky_relu(const Tensor& x, double slope) { return activation<ops::LeakyRelu>(x, {{slope}}); }
Tensor gelu(const Tensor& x) { return activation<ops::Gelu>(x); }
Tensor gelu_tanh(const Tensor& x) { return activation<ops::GeluTanh>(x); }
Tensor silu(const Tensor& x) { return activation<ops::Silu>(x); }
Tensor softplus(const Tensor& x) { return activation<ops::Softplus>(x); }
Tensor log_sigmoid(const Tensor& x) { return neg(softplus(neg(x))); }
Tensor erf(const Tensor& x) { return unary<ops::Erf>(x); }
Tensor pow(const Tensor& x, double p) {
  if (is_floating(x.dtype()) || p < 0 || !holds(DType::i64, p)) return unary<ops::PowNumber>(x, {{p}});
  Tensor y = ones_like(x), power = x;  // x^1, x^2, x^4, ...
  for (auto rest = static_cast<int64_t>(p); rest > 0; rest /= 2, power = mul(power, power))
    if (rest % 2) y = mul(y, power);
  return y;
}

namespace {
Tensor clamped(const char* op, const Tensor& x, Scalar lo, Scalar hi) {
  if (!is_floating(x.dtype())) {  // bounds that exclude no integer
    if (lo <= -0x1p63) lo = -kInfinity;
    if (hi >= 0x1p63) hi = kInfinity;
  }
  const auto whole = [](Scalar bound) { return std::isinf(double{bound}) || holds(DType::i64, bound); };
  if (is_floating(x.dtype()) || !whole(lo) || !whole(hi)) return unary<ops::Clamp>(x, {{lo, hi}}, op);
  check(x.dtype() == DType::i64 || (lo <= 255 && hi >= 0), op, ": [", lo, ", ", hi, "] holds no ", x.dtype());
  Tensor y = x;
  if (lo > -kInfinity) y = maximum(y, lo);
  if (hi < kInfinity) y = minimum(y, hi);
  return detached::to(y, x.dtype());
}
}  // namespace

Tensor clamp(const Tensor& x, Scalar lo, Scalar hi) {
  check(lo <= hi, "clamp: lower bound ", lo, " is above upper bound ", hi);
  return clamped("clamp", x, lo, hi);
}
Tensor clamp_min(const Tensor& x, Scalar lo) { return clamped("clamp_min", x, lo, kInfinity); }
Tensor clamp_max(const Tensor& x, Scalar hi) { return clamped("clamp_max", x, -kInfinity, hi); }

Tensor add(const Tensor& a, Scalar b) {
  return is_integer(a.dtype()) ? add(a, whole(b, a, "add")) : unary<ops::AddNumber>(a, {{b}});
}
Tensor sub(const Tensor& a, Scalar b) {
  return is_integer(a.dtype()) ? sub(a, whole(b, a, "sub")) : unary<ops::AddNumber>(a, {{-b}}, "sub");
}
Tensor sub(Scalar a, const Tensor& b) {
  return is_integer(b.dtype()) ? sub(whole(a, b, "sub"), b) : unary<ops::NumberSub>(b, {{a}});
}
Tensor mul(const Tensor& a, Scalar b) {
  return is_integer(a.dtype()) ? mul(a, whole(b, a, "mul")) : unary<ops::MulNumber>(a, {{b}});
}
Tensor div(const Tensor& a, Scalar b) { return unary<ops::DivNumber>(a, {{b}}); }
Tensor div(Scalar a, const Tensor& b) { return unary<ops::NumberDiv>(b, {{a}}); }

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = detached::to(x, dtype);
  if (!is_floating(dtype)) return y;
  if (auto* n = track("to", {&y}, {&x})) n->backward = differentiable([](Flow& g) { g.give(0, g.take()); });
  return y;
}

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor out = binary<ops::Add>(a, b);
  if (auto* n = track("add", {&out}, {&a, &b}))
    n->backward = differentiable([](Flow& g) {
      if (g.wants(1)) g.give(1, g.out());
      g.give(0, g.take());
    });
  return out;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  Tensor out = binary<ops::Sub>(a, b);
  if (auto* n = track("sub", {&out}, {&a, &b}))
    n->backward = differentiable([](Flow& g) {
      if (g.wants(1)) g.give(1, neg(g.out()));
      g.give(0, g.take());
    });
  return out;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out = binary<ops::Mul>(a, b);
  if (auto* n = track("mul", {&out}, {&a, &b}))
    n->backward = differentiable([a = save(a), b = save(b)](Flow& g) {
      if (g.wants(0)) g.give(0, mul(g.out(), b));
      if (g.wants(1)) g.give(1, mul(g.out(), a));
    });
  return out;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out = binary<ops::Div>(a, b);
  if (auto* n = track("div", {&out}, {&a, &b}))
    n->backward = differentiable([b = save(b), out = save(out)](Flow& g) {
      if (g.wants(0)) g.give(0, div(g.out(), b));
      if (g.wants(1)) g.give(1, neg(mul(g.out(), div(out, b))));  // 1 / b alone may overflow
    });
  return out;
}

Tensor minimum(const Tensor& a, const Tensor& b) { return extremum<ops::Minimum>(a, b); }
Tensor minimum(const Tensor& a, Scalar b) { return minimum(a, operand(b, a, "minimum")); }
Tensor minimum(Scalar a, const Tensor& b) { return minimum(operand(a, b, "minimum"), b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return extremum<ops::Maximum>(a, b); }
Tensor maximum(const Tensor& a, Scalar b) { return maximum(a, operand(b, a, "maximum")); }
Tensor maximum(Scalar a, const Tensor& b) { return maximum(operand(a, b, "maximum"), b); }

Tensor pow(const Tensor& a, const Tensor& b) {
  if (is_integer(a.dtype()) && is_floating(b.dtype())) return pow(detached::to(a, b.dtype()), b);
  if (is_integer(b.dtype()) && is_floating(a.dtype())) return pow(a, detached::to(b, a.dtype()));
  Tensor out = binary<ops::Pow>(a, b);
  if (auto* n = track("pow", {&out}, {&a, &b}))
    n->backward = differentiable([a = save(a), b = save(b), out = save(out)](Flow& g) {
      // d a^b = b a^(b-1) da + a^b ln(a) db; the second term is 0 at a = 0 and b >= 0, where ln is not finite.
      if (g.wants(0)) {
        const Tensor p = b;
        const Tensor slope = mul(p, pow(Tensor(a), sub(p, 1.0)));
        g.give(0, where(eq(p, 0), number(0, p), mul(g.out(), slope)));  // a^0 is constant
      }
      if (g.wants(1)) {
        const Tensor base = a, flat = logical_and(eq(base, 0), ge(b, 0));
        g.give(1, where(flat, number(0, base), mul(g.out(), mul(out, log(where(flat, number(1, base), base))))));
      }
    });
  return out;
}

Tensor pow(double a, const Tensor& b) {
  const Tensor p = is_integer(b.dtype()) ? detached::to(b, DType::f32) : b;
  return pow(number(a, p), p);
}

Tensor remainder(const Tensor& a, const Tensor& b) {
  Tensor out = binary<ops::Remainder>(a, b);
  if (auto* n = track("remainder", {&out}, {&a, &b}))
    n->backward = differentiable([a = save(a), b = save(b), out = save(out)](Flow& g) {
      if (g.wants(0)) g.give(0, g.out());
      if (!g.wants(1)) return;
      const Tensor steps = div(sub(out, a), b);  // -floor(a/b), piecewise constant
      g.give(1, where(eq(steps, 0), number(0, steps), mul(g.out(), steps)));
    });
  return out;
}
Tensor remainder(const Tensor& a, Scalar b) { return remainder(a, operand(b, a, "remainder")); }

namespace {

// True if x is a leaf that requires a gradient, or a view of such a leaf.
bool shows_leaf(const Tensor& x) {
  const autograd::Node* node = x.impl().node.get();
  while (node && node->is_view) node = node->inputs[0].node.get();
  return node && node->is_leaf() && !node->frozen;
}

// x = f(x, y), written as `op` in errors.
template <class Y> Tensor& update(const char* op, Tensor& x, const Y& y, Tensor (*f)(const Tensor&, const Y&)) {
  const Tensor result = f(x, y);
  check(!takes_gradient(x) || !shows_leaf(x), op, ": the tensor of shape ", x.shape(),
        " is a leaf that requires a gradient, or a view of one; change it under NoGrad, or write x = x ... for a new "
        "tensor");
  if (takes_gradient(result)) return x = result;
  check(result.shape() == x.shape() && result.dtype() == x.dtype(), op, ": the result is ", result.dtype(), ' ',
        result.shape(), ", written over ", x.dtype(), ' ', x.shape(), "; write x = x ", op[0],
        " ... for a tensor of its own");
  copy_into(x, result);
  return x;
}

template <Tensor (*f)(const Tensor&, Scalar)> Tensor by_number(const Tensor& x, const Scalar& y) { return f(x, y); }

}  // namespace

Tensor& operator+=(Tensor& x, const Tensor& y) { return update<Tensor>("+=", x, y, add); }
Tensor& operator-=(Tensor& x, const Tensor& y) { return update<Tensor>("-=", x, y, sub); }
Tensor& operator*=(Tensor& x, const Tensor& y) { return update<Tensor>("*=", x, y, mul); }
Tensor& operator/=(Tensor& x, const Tensor& y) { return update<Tensor>("/=", x, y, div); }
Tensor& operator+=(Tensor& x, Scalar y) { return update<Scalar>("+=", x, y, by_number<add>); }
Tensor& operator-=(Tensor& x, Scalar y) { return update<Scalar>("-=", x, y, by_number<sub>); }
Tensor& operator*=(Tensor& x, Scalar y) { return update<Scalar>("*=", x, y, by_number<mul>); }
Tensor& operator/=(Tensor& x, Scalar y) { return update<Scalar>("/=", x, y, by_number<div>); }

Tensor eq(const Tensor& a, const Tensor& b) { return compare<ops::Eq>(a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare<ops::Ne>(a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare<ops::Lt>(a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare<ops::Le>(a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare<ops::Gt>(a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare<ops::Ge>(a, b); }
Tensor eq(const Tensor& a, Scalar b) { return compare<ops::Eq>(a, b); }
Tensor ne(const Tensor& a, Scalar b) { return compare<ops::Ne>(a, b); }
Tensor lt(const Tensor& a, Scalar b) { return compare<ops::Lt>(a, b); }
Tensor le(const Tensor& a, Scalar b) { return compare<ops::Le>(a, b); }
Tensor gt(const Tensor& a, Scalar b) { return compare<ops::Gt>(a, b); }
Tensor ge(const Tensor& a, Scalar b) { return compare<ops::Ge>(a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) { return compare<ops::LogicalAnd>(a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return compare<ops::LogicalOr>(a, b); }
Tensor logical_not(const Tensor& x) { return eq(x, 0); }

Tensor isfinite(const Tensor& x) { return is_integer(x.dtype()) ? eq(x, x) : lt(abs(detach(x)), kInfinity); }
Tensor isinf(const Tensor& x) { return is_integer(x.dtype()) ? ne(x, x) : eq(abs(detach(x)), kInfinity); }
Tensor isnan(const Tensor& x) { return ne(x, x); }

namespace {
// a - b in f64, so that the difference of two large f32 does not overflow. An i64 is rounded only once: multiples
// of 2^32 and remainders are subtracted separately.
Tensor difference(const Tensor& a, const Tensor& b) {
  const auto in_f64 = [](const Tensor& x) { return detached::to(x, DType::f64); };
  if (a.dtype() != DType::i64) return sub(in_f64(a), in_f64(b));
  const Tensor low_a = remainder(a, 0x1p32), low_b = remainder(b, 0x1p32);
  return add(sub(in_f64(sub(a, low_a)), in_f64(sub(b, low_b))), in_f64(sub(low_a, low_b)));
}
}  // namespace

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_same_device("isclose", a, b);
  broadcast_shapes(a.shape(), b.shape(), "isclose");
  check(a.dtype() == b.dtype(), "isclose: dtypes ", a.dtype(), " and ", b.dtype(), " differ");
  const Tensor y = detached::to(b, DType::f64);
  const Tensor near = le(abs(difference(a, b)), add(mul(abs(y), rtol), atol));
  const Tensor same = logical_or(eq(a, b), logical_and(near, isfinite(y)));
  return equal_nan ? logical_or(same, logical_and(isnan(a), isnan(b))) : same;
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_same_device("where", condition, a, b);
  check(condition.dtype() == DType::u8, "where: the condition is ", condition.dtype(), ", expected u8");
  const DType both = promoted_dtype("where", a, b);
  const Dims ab = broadcast_shapes(a.shape(), b.shape(), "where");
  Tensor out = empty(broadcast_shapes(condition.shape(), ab, "where"), {both, a.device()});
  kernels::where.on(a.device(), out, condition, detached::to(a, both), detached::to(b, both));
  if (!is_floating(both)) return out;
  if (auto* n = track("where", {&out}, {&a, &b}))
    n->backward = differentiable([condition = save(condition)](Flow& g) {
      const Tensor zero = number(0, g.out());
      if (g.wants(0)) g.give(0, where(condition, g.out(), zero));
      if (g.wants(1)) g.give(1, where(condition, zero, g.out()));
    });
  return out;
}
Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  return where(condition, a, beside(a, b, DType::f32));
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  return where(condition, beside(b, a, DType::f32), b);
}

}  // namespace isonorm
