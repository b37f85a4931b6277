#include "equivalence/verify/stream_check.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "streams/coordinates.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

using streams::Role;

template <class F> TensorMap moved(const TensorMap& state, Generator& generator, F&& format_of) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : widened(state)) {
    if (!is_floating(tensor.dtype())) {
      out.add(name, tensor);
      continue;
    }
    const Tensor up = randint(0, 2, tensor.shape(), tensor.device(), generator).to(DType::f64);
    out.add(name, tensor * (1 + epsilon(format_of(name)) * (2 * up + -1.0)));
  }
  return out;
}

TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed) {
  Generator generator{seed, 0};
  return moved(state, generator, [dtype](const std::string&) { return dtype; });
}

TensorMap moved_by_rounding(const TensorMap& some, const LazyState& state, const LazyState& partner,
                            Generator& generator) {
  return moved(some, generator, [&](const std::string& name) {
    const NumberFormat own = state.format(name);
    const Tensor* other = partner.outline.find(name);
    return other && is_floating(other->dtype()) ? coarser(own, partner.format(name)) : own;
  });
}

TensorMap widened(const TensorMap& state) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : state)
    out.add(name, is_floating(tensor.dtype()) ? detach(tensor).to(DType::f64) : tensor);
  return out;
}

TensorMap centred(const TensorMap& state, const streams::Plan& plan) {
  NoGrad no_grad;
  const TensorMap wide = widened(state);
  if (!row_of(plan.form).zero_mean_writers()) return wide;
  std::map<std::string, int> dim_of;
  for (const streams::Place& p : plan.places)
    if (p.role == Role::writer) dim_of[p.name] = p.dim;
  TensorMap out;
  for (const auto& [name, tensor] : wide)
    out.add(name, dim_of.contains(name) ? streams::recentre(tensor, dim_of[name]) : tensor);
  return out;
}

}  // namespace isonorm::equivalence
