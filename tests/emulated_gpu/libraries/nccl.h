// A stand-in for NCCL on the host: the part that gpu/libraries uses, for ranks that are threads with an emulated device each. It moves
// the bytes when the streams of all ranks have come to a group, and keeps a stream standing until then. Like the real one it gives a
// group to the stream some time after ncclGroupEnd. Misuse throws Fault: ranks whose groups do not fit each other, another device or
// stream, a communicator that may block, is not ready, or was ended; a group that is not closed.
#pragma once

#include <atomic>
#include <cstdint>

namespace isonorm::gpu::emulated {

struct NcclSettings {
  std::atomic<bool> abort_hangs = false;   // ncclCommAbort does not return while it is so
  std::atomic<bool> loses_groups = false;  // a group is given to no stream, and its communicator stays in progress
};
NcclSettings& nccl_settings();

// Groups that were carried on all ranks, and communicators that were ended by ncclCommAbort, so far.
int64_t nccl_groups();
int64_t nccl_aborts();

// The stand-in's functions by their names; null where there is none.
void* nccl_function(const char* name);

}  // namespace isonorm::gpu::emulated
