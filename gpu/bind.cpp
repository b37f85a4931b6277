// What a slot of core/kernels has on a device: the one list of them.
#include "core/kernels/copy.h"
#include "core/kernels/matmul.h"
#include "core/kernels/mlp.h"
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

  kernels::matmul.bind_cuda(&gpu::matmul);
  kernels::weight_gradient.bind_cuda(&gpu::weight_gradient);
  kernels::keep_packed.bind_cuda(&gpu::keep_packed);
  kernels::mlp_forward.bind_cuda(&gpu::mlp_forward);
  kernels::mlp_backward.bind_cuda(&gpu::mlp_backward);
}

}  // namespace isonorm
