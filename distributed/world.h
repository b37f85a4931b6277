// The processes that are started together.
#pragma once

#include "distributed/group.h"

namespace isonorm::distributed {

// All processes of a launcher of MPI, `mpirun -np 4 PROGRAM`, found by the environment that it sets; without one this process
// alone. MPI begins with the first call and ends with the process. Throws where the launcher's library cannot be opened:
// several processes that each train alone are never what was meant.
Group& world();

// For main(), of what nothing caught: ends all ranks, behind one line on stderr, "program: rank 2: ...", of the rank that is to
// tell. Returns 1; of several processes it does not return.
int ended_by(const std::exception& e, const char* program) noexcept;

}  // namespace isonorm::distributed
