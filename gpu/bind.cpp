// What a slot of core/kernels has on a device: the one list of them.
#include "core/kernels/copy.h"
#include "core/kernels/softmax.h"
#include "core/memory/storage.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/stream.h"
#include "gpu/transfer.h"

namespace isonorm {

void start_cuda() {
  gpu::check_device({DeviceKind::cuda, 0});
  for (int i = 0; i < gpu::device_count(); ++i) {
    const Device device{DeviceKind::cuda, i};
    gpu::stream_of(device);
    bind_allocator(device, &gpu::device_allocator(device));
  }
  kernels::transfer = &gpu::transfer;

  kernels::fill_on.bind_cuda(&gpu::fill);

  kernels::find_outside.bind_cuda(&gpu::find_outside);
  kernels::take_rows.bind_cuda(&gpu::take_rows);
  kernels::add_rows.bind_cuda(&gpu::add_rows);
  kernels::gather.bind_cuda(&gpu::gather);
  kernels::gather_backward.bind_cuda(&gpu::gather_backward);
  kernels::topk.bind_cuda(&gpu::topk);
  kernels::search_sorted.bind_cuda(&gpu::search_sorted);

  kernels::cross_entropy.bind_cuda(&gpu::cross_entropy);
  kernels::cross_entropy_backward.bind_cuda(&gpu::cross_entropy_backward);
  kernels::cross_entropy_scale.bind_cuda(&gpu::cross_entropy_scale);
  kernels::cross_entropy_total.bind_cuda(&gpu::cross_entropy_total);

  kernels::norm_forward.bind_cuda(&gpu::norm_forward);
  kernels::norm_backward.bind_cuda(&gpu::norm_backward);

  kernels::reduce.bind_cuda(&gpu::reduce);
  kernels::arg_max.bind_cuda(&gpu::arg_max);
  kernels::cumsum.bind_cuda(&gpu::cumsum);
  kernels::recentre.bind_cuda(&gpu::recentre);

  kernels::softmax.bind_cuda(&gpu::softmax);
  kernels::softmax_backward.bind_cuda(&gpu::softmax_backward);
}

}  // namespace isonorm
