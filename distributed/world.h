// The processes that are started together.
#pragma once

#include "distributed/group.h"

namespace isonorm::distributed {

// All processes of a launcher of MPI, `mpirun -np 4 PROGRAM`, found by the environment that it sets; without one this process
// alone. MPI begins with the first call and ends with the process. Warns (core/system/warning.h) if the launcher has bound this process to
// fewer cores than its share of the machine. Throws if the launcher's library cannot be opened: nobody wants several
// processes that each train alone.
Group& world();

// Whether a launcher has started this process as one of several.
bool one_of_several();

// For a program that tells on stderr what went wrong: returns where this rank is to tell it. That is the one that a Disagreement
// names; of other errors, which may have come to all ranks, the first rank at once, the others after a while: by then end_all()
// of another one has ended them.
void wait_to_tell(const std::exception& e) noexcept;
// Ends all processes with that exit code; of one alone does nothing.
void end_all(int code) noexcept;

// Both, for main(), behind one line "program: rank 2: what went wrong". Returns 1, where it returns.
int ended_by(const std::exception& e, const char* program) noexcept;

}  // namespace isonorm::distributed
