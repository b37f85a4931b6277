// Internal: processes that an MPI launcher has started, by the MPI library of that launcher.
#pragma once

#include <memory>

#include "distributed/transport.h"

namespace isonorm::distributed {

// Whether a launcher of MPI has started this process as one of several, by the environment that it sets.
bool launched_by_mpi();

// Throws if the environment says that this process was started together with others, but MPI has not started it so.
// Then another launcher has started it (torchrun, srun), or some of an MPI launcher's variables were lost. The message
// names the variable.
void check_alone();

// The ranks of the launcher. Opens its library: libmpi.so.40 of Open MPI 4 and 5, libmpich.so.12 or libmpi.so.12 of MPICH 3 and 4
// and what has its binary interface. Throws where none can be opened.
std::unique_ptr<Transport> mpi_world();

// Leaves MPI, which all ranks do together; after that it is of no more use.
void finish_mpi() noexcept;

}  // namespace isonorm::distributed
