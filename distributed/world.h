// The processes that are started together.
#pragma once

#include <string>

#include "distributed/group.h"

namespace isonorm::distributed {

// All processes of a launcher of MPI, `mpirun -np 4 PROGRAM`, found by the environment that it sets; without one this process
// alone. MPI begins with the first call and ends with the process. Warns (core/system/warning.h) if the launcher has bound this process to
// fewer cores than its share of the machine. Throws if the launcher's library cannot be opened. Throws, too, if another launcher has set
// the environment, such as torchrun, whose processes cannot train together here: nobody wants them to train alone.
Group& world();

// Whether a launcher of MPI has started this process as one of several.
bool one_of_several();

// For a program that prints its errors: returns when it is this rank's turn to print. The rank that a Disagreement names prints it.
// Another error may have come to all ranks, so the first rank prints it at once, and the others wait for two seconds: if the first
// rank prints, its end_all() ends them before. Returns the beginning of the line, "rank 1 on moon: "; nothing in a process alone, and
// nothing for a Disagreement, whose line names ranks already.
std::string wait_to_tell(const std::exception& e) noexcept;
// Ends all processes with that exit code. Does nothing in a process alone.
void end_all(int code) noexcept;

// Both, for main(), and between them the line "program: rank 2 on moon: what went wrong". Returns 1, if it returns.
int ended_by(const std::exception& e, const char* program) noexcept;

}  // namespace isonorm::distributed
