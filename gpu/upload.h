// Copies from the host that overlap with a device's work: through pinned memory, in a stream of their own.
#pragma once

#include "core/memory/upload.h"

namespace isonorm::gpu {

// core's upload() for CUDA devices. Four orders hold. The copy follows the device's earlier work, which may have used
// the tensor's memory. Work given after take() follows the copy, and so does work given after the upload was dropped. A
// pinned block is reused only when its copy is over.
std::unique_ptr<Upload> begin_upload(const Tensor& x, Device device);

}  // namespace isonorm::gpu
