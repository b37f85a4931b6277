// Errors that kernels find in tensors (core/kernels/checks.h). Each device has one place for a complaint, in pinned
// host memory. The first kernel that finds an error fills it in, and later ones leave it until a wait has read it. A
// check therefore costs a launch and no wait, any number of checks takes the same memory, and checks in a replayed
// graph may complain, too.
#pragma once

#include "core/kernels/checks.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

struct ComplaintPlace {
  int full;  // the kernel writes it last, the host reads it first
  kernels::Complaint complaint;
};

// Memory that the checks of a device write to; lives until the process ends.
struct ComplaintMemory {
  ComplaintPlace* place;      // on the host, also visible to kernels
  unsigned long long* first;  // on the device: the smallest position of a wrong id, all ones between two checks
  unsigned* done;             // on the device: number of blocks that are done, 0 between two checks
};
ComplaintMemory complaint_memory(const Stream& stream);

// Called after the launch of a check. Waits for it if the environment says ISONORM_GPU_CHECKS=now (0 or unset: no
// wait), unless the stream is being captured. Throws if the variable has another value.
void finish_check(const Stream& stream);

// Throws the complaint of a device, once; does nothing if there is none. Called after every wait for the device.
void throw_complaint(int index);

// A copy of s that lives until the process ends, shared by equal strings; "" if there are too many.
const char* interned(const std::string& s);

}  // namespace isonorm::gpu
