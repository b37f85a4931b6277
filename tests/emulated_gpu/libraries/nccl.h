// An emulation of NCCL on the host: the part that gpu/libraries uses, for ranks that are threads with one emulated
// device each. A group's bytes are moved when the streams of all ranks have reached it; until then the streams wait.
// Like the real library, it puts a group into the stream some time after ncclGroupEnd. Misuse throws Fault: groups of
// ranks that do not match; another device or stream; a communicator that may block, is not ready, or was ended; a group
// that is not closed.
#pragma once

#include <atomic>
#include <cstdint>

namespace isonorm::gpu::emulated {

struct NcclSettings {
  std::atomic<bool> abort_hangs = false;   // if true, ncclCommAbort does not return
  std::atomic<bool> loses_groups = false;  // groups reach no stream; their communicator stays in progress
};
NcclSettings& nccl_settings();

// Number of groups that all ranks completed, and of communicators that ncclCommAbort ended.
int64_t nccl_groups();
int64_t nccl_aborts();

// The emulated function of this name; null if there is none.
void* nccl_function(const char* name);

}  // namespace isonorm::gpu::emulated
