#include "equivalence/convert/checkpoint_facts.h"

#include <algorithm>
#include <cstring>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
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

bool folded(const streams::Plan& plan) {
  const auto plain = [](const streams::NormPlace& n) { return n.weight.empty() && n.bias.empty(); };
  const auto unscaled = [](const streams::Place& p) { return p.scale.empty(); };
  return plan.tied.empty() && std::all_of(plan.norms.begin(), plan.norms.end(), plain) &&
         std::all_of(plan.places.begin(), plan.places.end(), unscaled);
}

}  // namespace isonorm::equivalence
