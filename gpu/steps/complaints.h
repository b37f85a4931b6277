// What kernels found wrong in tensors (core/kernels/checks.h). Each device has one place for a complaint, in pinned host
// memory: the first kernel that finds something fills it in, and later ones leave it until a wait has read it. So a check
// costs a launch and no wait, any number of checks takes the same memory, and what a graph replays may complain, too.
#pragma once

#include "core/kernels/checks.h"
#include "gpu/stream.h"

namespace isonorm::gpu {

struct ComplaintPlace {
  int full;  // the kernel writes it last, the host reads it first
  kernels::Complaint complaint;
};

// What the checks of a device write to; until the process ends.
struct ComplaintMemory {
  ComplaintPlace* place;      // on the host, for kernels too
  unsigned long long* first;  // on the device: the least position of a wrong id, all ones between two checks
  unsigned* done;             // on the device: blocks that have looked, 0 between two checks
};
ComplaintMemory complaint_memory(const Stream& stream);

// Behind the launch of a check: waits for it where the environment says ISONORM_GPU_CHECKS=now (0, or nothing: not),
// unless the stream is under capture. Throws where that says anything else.
void finish_check(const Stream& stream);

// Throws the complaint of a device, once; nothing where there is none. Whoever has waited for the device calls it.
void throw_complaint(int index);

// A string that lives until the process ends, one for equal ones; "" where there are too many.
const char* interned(const std::string& s);

}  // namespace isonorm::gpu
