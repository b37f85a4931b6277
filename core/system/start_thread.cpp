#include "core/system/start_thread.h"

#include <unistd.h>

#include "core/error.h"

namespace isonorm {

HomeProcess::HomeProcess() : pid_(getpid()) {}

bool HomeProcess::is_elsewhere() const { return getpid() != pid_; }

void HomeProcess::check_here(const char* what) const {
  check(!is_elsewhere(), what, ": its threads are in process ", pid_, ", this is process ", getpid(),
        ", a child made by fork(): make another one in the child");
}

}  // namespace isonorm
