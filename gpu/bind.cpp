// What a slot of core/kernels has on a device: the one list of them.
#include "core/kernels/attention.h"
#include "core/kernels/copy.h"
#include "core/kernels/optimizer.h"
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

  kernels::attention_forward.bind_cuda(&gpu::attention_forward);
  kernels::attention_backward.bind_cuda(&gpu::attention_backward);
  kernels::update.bind_cuda(&gpu::update);
  kernels::sum_squares.bind_cuda(&gpu::sum_squares);
  kernels::scale.bind_cuda(&gpu::scale);
  kernels::clamp.bind_cuda(&gpu::clamp);
}

}  // namespace isonorm
