#include "optim/adafactor.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/kernels/optimizer.h"

namespace isonorm::optim {

template class ElementwiseGroups<Adafactor, AdafactorOptions>;
namespace {

// A scalar, f64.
Tensor rms(const Tensor& x) { return norm(x).to(DType::f64) / std::sqrt(static_cast<double>(x.numel())); }

// mean += rest (x - mean), in place.
void take_in(const Tensor& mean, const Tensor& x, double rest) { copy_into(mean, mean + (x - mean) * rest); }

// Updates the state with the squared gradients, and returns the second moment that it represents.
Tensor second_moment(const std::array<Tensor, 3>& state, const Tensor& squares, double rest, double eps1) {
  if (squares.rank() < 2) {
    take_in(state[0], squares, rest);
    return state[0];
  }
  const Tensor &row = state[0], &column = state[1];
  take_in(row, mean(squares, {-1}, true), rest);
  take_in(column, mean(squares, {-2}, true), rest);
  return row / clamp(mean(row, {-2}, true), eps1, HUGE_VAL) * column;
}

}  // namespace

Adafactor::Group Adafactor::group_of(const AdafactorOptions& o) {
  return {.conditions = {{o.beta2_decay <= 0 && std::isfinite(o.beta2_decay), "beta2_decay", o.beta2_decay,
                          "a finite number up to 0"},
                         not_negative("eps1", o.eps1.value_or(0)),
                         not_negative("eps2", o.eps2),
                         {o.d >= 1, "d", o.d, "a number from 1"},
                         not_negative("weight_decay", o.weight_decay)},
          .specs_of = [](const Tensor& p) -> std::vector<StateSpec> {
            if (p.rank() < 2) return {{"variance", p.shape()}};
            Dims row = p.shape(), column = p.shape();
            row[p.rank() - 1] = column[p.rank() - 2] = 1;
            return {{"row_var", row}, {"col_var", column}};
          }};
}

Adafactor::Step Adafactor::step_with(const AdafactorOptions& o, double lr, int64_t) {
  return {.rule = rules::Along{}, .keep = 1 - lr * o.weight_decay};
}

void Adafactor::prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) {
  NoGrad no_grad;
  for (size_t i = 0; i < updates.size(); ++i) {
    kernels::Update& u = updates[i];
    if (u.gradient.numel() == 0) continue;
    const AdafactorOptions& o = options_[stepped[i]->group];
    const DType dtype = u.state[0].dtype();
    const double t = static_cast<double>(stepped[i]->steps), eps1 = o.eps1.value_or(epsilon(u.parameter.dtype()));
    const Tensor alpha =
        clamp(rms(u.parameter.to(dtype)), o.eps2, HUGE_VAL) * std::min(lr(stepped[i]->group), 1 / std::sqrt(t));
    const Tensor g = scaled_gradient(u, dtype);
    const Tensor v = second_moment(u.state, square(g), std::pow(t, o.beta2_decay), eps1);
    const Tensor direction = g * rsqrt(clamp(v, eps1 * eps1, HUGE_VAL));
    u.state[0] = direction;
    u.gradient_factor = {};  // applied to the direction already
    u.rule = rules::Along{1};
    u.trust = alpha / clamp(rms(direction) / o.d, 1, HUGE_VAL);
  }
}

}  // namespace isonorm::optim
