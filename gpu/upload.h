// Copies from the host that go beside a device's work: through pinned memory, in a stream of their own.
#pragma once

#include "core/memory/upload.h"

namespace isonorm::gpu {

// As core's upload() says, of a device of CUDA. Four orders hold: the copy follows what the device was given before, to
// which the tensor's memory may have served; what is given after take() follows the copy; so does what is given after
// the upload was dropped; and a pinned block serves another copy when its own is over.
std::unique_ptr<Upload> begin_upload(const Tensor& x, Device device);

}  // namespace isonorm::gpu
