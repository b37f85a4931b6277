// Internal: the ranks that an MPI launcher started, using that launcher's MPI library.
#pragma once

#include <memory>

#include "distributed/transport.h"

namespace isonorm::distributed {

// True if an MPI launcher started this process together with others, according to environment variables.
bool launched_by_mpi();

// Throws if the environment says that this process was started together with others, but MPI has not started it so.
// Then another launcher has started it (torchrun, srun), or some of an MPI launcher's variables were lost. The message
// names the variable.
void check_alone();

// All ranks of the launcher. Loads its library: libmpi.so.40 of Open MPI 4 and 5, or libmpich.so.12 or libmpi.so.12 of
// MPICH 3 and 4 and of libraries with the same ABI. Throws if none can be loaded.
std::unique_ptr<Transport> mpi_world();

// Finalises MPI, a collective call. MPI cannot be used afterwards.
void finish_mpi() noexcept;

}  // namespace isonorm::distributed
