// How tensors come to devices: the first one that asks for memory there calls start_cuda().
#pragma once

namespace isonorm {

// Binds the allocators of the devices, the copies to and from them and the kernels of every slot. Once for a process;
// throws "cuda: <why there is no device>", each time.
void start_cuda();

}  // namespace isonorm
