#include "core/packing.h"

#include "core/kernels/matmul.h"

namespace isonorm {

void keep_packed(const Tensor& weight, bool on) {
  check(weight.rank() == 2, "keep_packed: the weight has shape ", weight.shape(), ", expected [out, in]");
  const TensorImpl& w = weight.impl();
  if (!on) return w.storage->keep(nullptr);
  const bool all = w.contiguous && w.offset == 0 && w.numel > 0 && w.storage->bytes() == w.numel * size_of(w.dtype);
  const bool packs = weight.device().kind == DeviceKind::cpu && is_floating(w.dtype);
  if (all && packs) kernels::keep_packed.on(weight.device(), weight);
}

}  // namespace isonorm
