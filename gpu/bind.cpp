// What a slot of core/kernels has on a device: the one list of them.
#include "core/kernels/copy.h"
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

  kernels::copy_on.bind_cuda(&gpu::copy);
  kernels::fill_on.bind_cuda(&gpu::fill);

  kernels::unary.bind_cuda(&gpu::unary);
  kernels::unary_backward.bind_cuda(&gpu::unary_backward);
  kernels::binary.bind_cuda(&gpu::binary);
  kernels::compare.bind_cuda(&gpu::compare);
  kernels::where.bind_cuda(&gpu::where);
}

}  // namespace isonorm
