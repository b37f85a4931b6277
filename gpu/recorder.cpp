#include "gpu/recorder.h"

#include <algorithm>

#include "core/system/profile.h"

namespace isonorm::gpu {
namespace {
thread_local Recorder* innermost = nullptr;
}

Recorder::Recorder() : outer_(innermost) { innermost = this; }
Recorder::~Recorder() { innermost = outer_; }

int64_t Recorder::count(Recorded::Kind kind) const {
  return std::count_if(all_.begin(), all_.end(), [&](const Recorded& r) { return r.kind == kind; });
}

void record(Recorded::Kind kind, const char* name, int64_t blocks, int64_t bytes) {
  for (Recorder* r = innermost; r; r = r->outer_)
    r->all_.push_back({kind, name, profile::running_kernel(), blocks, bytes});
}

}  // namespace isonorm::gpu
