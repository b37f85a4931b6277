#include "equivalence/convert/state.h"

#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "streams/coordinates.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

namespace {
// The values as a contiguous tensor on the CPU. The tensors of a training may be on a device.
Tensor on_host(const Tensor& x) { return contiguous(to(detach(x), kCpu)); }
}  // namespace

bool same_bytes(const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
  const Tensor a = on_host(x), b = on_host(y);
  const auto equal = [&]<class T>() {
    return a.numel() == 0 || std::memcmp(a.data<T>(), b.data<T>(), static_cast<size_t>(a.numel()) * sizeof(T)) == 0;
  };
  if (a.dtype() == DType::i64) return equal.template operator()<int64_t>();
  if (a.dtype() == DType::u8) return equal.template operator()<uint8_t>();
  return visit_floating(a.dtype(), "compare", equal);
}

bool identical(const TensorMap& a, const TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a)
    if (const Tensor* other = b.find(name); !other || !same_bytes(tensor, *other)) return false;
  return true;
}

NumberFormat coarsest(const TensorMap& state, const std::set<std::string>& half) {
  NumberFormat found = DType::f64;
  for (const auto& [name, tensor] : state)
    if (is_floating(tensor.dtype())) found = coarser(found, {tensor.dtype(), half.contains(name)});
  return found;
}

Tensor widened(const TensorMap& state, const std::string& name) { return detach(state.at(name)).to(DType::f64); }

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
  TensorMap out;
  for (const auto& [name, tensor] : wide) {
    const streams::Plan::Writer* writer = plan.writer(name);
    out.add(name, writer ? streams::recentre(tensor, writer->dim) : tensor);
  }
  return out;
}

LazyState with_gains(LazyState stored, const streams::Plan& plan) {
  std::set<std::string> gains;
  for (const streams::Plan::Norm& n : plan.norms)
    if (n.plus_one && !n.weight.empty()) gains.insert(n.weight);
  if (gains.empty()) return stored;
  LazyState state;
  for (const auto& [name, tensor] : stored.outline) {
    const bool adds = gains.contains(name) && is_floating(tensor.dtype());
    state.outline.add(name, adds ? outline(tensor.shape(), DType::f64) : tensor);
    if (!adds && stored.half.contains(name)) state.half.insert(name);
  }
  state.read = [read = std::move(stored.read), gains = std::move(gains)](const std::string& name) {
    const Tensor t = read(name);
    return gains.contains(name) && is_floating(t.dtype()) ? t.to(DType::f64) + 1.0 : t;
  };
  return state;
}

TensorMap with_gains(const TensorMap& stored, const streams::Plan& plan) {
  const LazyState state = with_gains(LazyState(stored), plan);
  TensorMap held;
  for (const auto& [name, _] : state.outline) held.add(name, state.read(name));
  return held;
}

TensorMap moved_by_rounding(const TensorMap& some, const LazyState& state, const LazyState& partner,
                            Generator& generator) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : widened(some)) {
    if (!is_floating(tensor.dtype())) {
      out.add(name, tensor);
      continue;
    }
    const Tensor* other = partner.outline.find(name);
    const NumberFormat own = state.format(name),
                       format = other && is_floating(other->dtype()) ? coarser(own, partner.format(name)) : own;
    const Tensor up = randint(0, 2, tensor.shape(), tensor.device(), generator).to(DType::f64);
    out.add(name, tensor * (1 + epsilon(format) * (2 * up + -1.0)));
  }
  return out;
}

}  // namespace isonorm::equivalence
