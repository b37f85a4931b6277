// What a slot of core/kernels has on a device: the one list of them.
#include "gpu/bind.h"

#include "core/kernels/copy.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/stream.h"

namespace isonorm {

void start_cuda() {
  gpu::check_device({DeviceKind::cuda, 0});
  for (int i = 0; i < gpu::device_count(); ++i) gpu::stream_of(Device{DeviceKind::cuda, i});
  bind_allocator(DeviceKind::cuda, &gpu::device_allocator({DeviceKind::cuda, 0}));

  kernels::fill_on.bind_cuda(&gpu::fill);
}

}  // namespace isonorm
