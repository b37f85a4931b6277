#include "lab/probes/rounding.h"

#include <cmath>
#include <memory>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::equivalence {
namespace {

Tensor rows_of(const Tensor& x) { return reshape(x, {-1, x.size(-1)}); }

// x as a separate node, so that a hook sees the gradient from one reader.
Tensor read_once(const Tensor& x, GradHook hook) {
  if (!x.defined() || !takes_gradient(x)) return x;
  const Tensor y = x * 1.0;
  on_grad(y, std::move(hook));
  return y;
}

}  // namespace

Rounding::Rounding(DType dtype, Generator generator)
    : eps_(epsilon(dtype)), inside_(dtype != DType::bf16), generator_(generator) {}

Tensor Rounding::error(const Tensor& of) {
  const NoGrad no_grad;
  const double range = kRoundingError * std::sqrt(12.0) * eps_;  // width of a uniform distribution
  return detach(of) * ((rand(of.shape(), of.options(), generator_) - 0.5) * range);
}

// The error of a sum of `terms` terms. squares: the sum of their squares.
Tensor Rounding::error_of_sum(const Tensor& sum, const Tensor& squares, int64_t terms) {
  const NoGrad no_grad;
  if (!inside_) return error(sum);
  return error(sqrt((square(sum) + squares) * (static_cast<double>(terms) / 3)));
}

Tensor Rounding::gradient_of(const Tensor& x) {
  return read_once(x, [this](const Tensor& g) { return g + error(g); });
}

Tensor Rounding::value(const Tensor& x) { return x + error(x); }

Tensor Rounding::linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor xx = square(detach(x)), ww = square(detach(weight)), bb = bias.defined() ? square(detach(bias)) : bias;
  const auto gg = std::make_shared<Tensor>();  // squares of the gradient of the result
  const Tensor x1 =
      read_once(x, [=, this](const Tensor& g) { return g + error_of_sum(g, matmul(*gg, ww), ww.size(0)); });
  const int64_t rows = rows_of(xx).size(0);
  const Tensor w1 = read_once(weight, [=, this](const Tensor& g) {
    return g + error_of_sum(g, matmul(transpose(rows_of(*gg), 0, 1), rows_of(xx)), rows);
  });
  const Tensor b1 =
      read_once(bias, [=, this](const Tensor& g) { return g + error_of_sum(g, sum(rows_of(*gg), {0}), rows); });
  const Tensor y = isonorm::linear(x1, w1, b1);
  if (takes_gradient(y))
    on_grad(y, [gg](const Tensor& g) {
      *gg = square(g);
      return g;
    });
  return y + error_of_sum(detach(y), isonorm::linear(xx, ww, bb), x.size(-1));
}

Tensor Rounding::row_sum(const Tensor& x) {
  const Tensor s = sum(x, {-1}, true);
  return inside_ ? s + error_of_sum(detach(s), sum(square(detach(x)), {-1}, true), x.size(-1)) : s;
}

}  // namespace isonorm::equivalence
