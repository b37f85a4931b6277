#include "core/kernels/copy.h"

#include <optional>

#include "core/view.h"

namespace isonorm::kernels {

void copy_between(const Tensor& dst, const Tensor& src) {
  if (dst.device() == src.device()) return copy(dst, src);
  if (dst.numel() == 0) return;
  check(transfer != nullptr, "copy: from ", src.device(), " to ", dst.device(), " is not possible here");
  const bool as_it_is = dst.is_contiguous() && dst.dtype() == src.dtype() && dst.shape() == src.shape();
  const Tensor from = detached::contiguous(src);
  const Tensor there = as_it_is ? dst : empty(src.shape(), {src.dtype(), dst.device()});
  {
    std::optional<profile::Timer> timer;
    const Device gpu = dst.device() == kCpu ? src.device() : dst.device();  // the device in whose stream it runs
    if (profile::recording()) timer.emplace("transfer", tensor_bytes(from), 0, gpu);
    transfer(there, from);
  }
  if (!as_it_is) copy(dst, there);
}

}  // namespace isonorm::kernels
