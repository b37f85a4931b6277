#include "autograd/fused/add_norm.h"

#include "autograd/fusion.h"
#include "autograd/ops/masters.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/norm_rule.h"
#include "autograd/ops/pointwise.h"
#include "core/view.h"

namespace isonorm {

AddNorm reference::add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain,
                            const Tensor& bias, std::optional<DType> as) {
  const Tensor sum = add(x, to(branch, x.dtype()));
  return {sum, normalize(sum, spec, gain, bias, as)};
}

AddNorm add_norm(const Tensor& x, const Tensor& branch, const NormSpec& spec, const Tensor& gain, const Tensor& bias,
                 std::optional<DType> as) {
  check_same_device("add_norm", x, branch);
  check(x.shape() == branch.shape(), "add_norm: shapes ", x.shape(), " and ", branch.shape(), " differ");
  check(detail::fits_rows(x.dtype(), branch.dtype()), "add_norm: dtypes ", x.dtype(), " and ", branch.dtype(),
        " differ");
  const DType normed = as.value_or(x.dtype());
  detail::check_norm("add_norm", spec, x, gain, bias, normed);
  if (use_reference() || spec.kind == NormKind::none) return reference::add_norm(x, branch, spec, gain, bias, as);
  const auto r = detail::norm_forward(spec, detached::contiguous(x), detached::contiguous(branch), gain, bias, normed);
  if (auto* n = track("add_norm", {&r.sum, &r.y}, {&x, &branch, &gain, &bias}))
    n->backward =
        differentiable([tape = detail::NormTape(spec, r.sum, gain, bias, r), added = branch.dtype()](Flow& g) {
          if (g.needs_composition()) {
            // Only the sum of x and branch matters.
            const Tensor x = g.attached(0, tape.input_values()), branch = g.attached(1),
                         sum = branch.defined() ? x + branch : x;
            return g.follow({sum, tape.compose(sum, g.attached(2, tape.gain), g.attached(3))});
          }
          const Tensor dsum = g.has_out(0) ? g.out(0) : Tensor();
          detail::NormTape::Gradients d{dsum};
          if (g.has_out(1)) d = tape.backward(g.out(1), dsum, g.wants(2), g.wants(3), added);
          g.give(0, d.dx);
          g.give(1, d.dbranch.defined() ? d.dbranch : d.dx);
          if (d.dgain.defined()) g.give(2, d.dgain);
          if (d.dbias.defined()) g.give(3, d.dbias);
        });
  return {r.sum, r.y};
}

}  // namespace isonorm
