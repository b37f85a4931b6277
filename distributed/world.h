// All processes that a launcher started together.
#pragma once

#include <string>

#include "distributed/group.h"

namespace isonorm::distributed {

// All processes that an MPI launcher (`mpirun -np 4 PROGRAM`) has started, found by environment variables; without a
// launcher, this process alone. MPI starts with the first call and ends with the process. Warns (core/system/warning.h)
// if the launcher has bound this process to fewer cores than its share of the machine.
//
// Throws if the launcher's library cannot be opened. Also throws if another launcher, such as torchrun, has set the
// environment: its processes cannot train together here, and training each of them separately is not intended.
Group& world();

// True if an MPI launcher has started this process together with others.
bool one_of_several();

// Returns when it is this rank's turn to print an error. A Disagreement is printed by its speaker(). Another error may
// have occurred on all ranks, so rank 0 prints it at once and the others wait for two seconds: if rank 0 prints, its
// end_all() ends them before that. Returns the beginning of the line, "rank 1 on moon: ". It is empty if the process is
// alone, and for a Disagreement, whose message names ranks already.
std::string wait_to_tell(const std::exception& e) noexcept;
// Ends all processes with this exit code. Does nothing if the process is alone.
void end_all(int code) noexcept;

// Reports an error of main(): wait_to_tell(), then the line "program: rank 2 on moon: what went wrong", then
// end_all(1). Returns 1, if it returns.
int ended_by(const std::exception& e, const char* program) noexcept;

}  // namespace isonorm::distributed
