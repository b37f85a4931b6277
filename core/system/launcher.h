// Internal: the launcher that has started this process as one of several ranks: mpirun of Open MPI or MPICH, or srun.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace isonorm {

using Variables = std::function<const char*(const char* name)>;  // an environment; null if it has no such variable

// The ranks of one machine, by the launcher's variables.
struct LocalRanks {
  int count = 1;                   // ranks on this machine, this process included; 1 without a launcher
  const char* variable = nullptr;  // the variable that says so; null without a launcher
  int allocated = 0;               // cores of this machine that Slurm has allocated to the job; 0: unknown
  bool bound_by_default = false;   // Open MPI 4 has bound the rank, and nobody asked for a binding
};

// Reads the number from Open MPI's OMPI_COMM_WORLD_LOCAL_SIZE, MPICH's MPI_LOCALNRANKS or, under srun with --mpi, Slurm's
// SLURM_STEP_TASKS_PER_NODE: "2(x3),1" stands for three machines with two ranks and a fourth with one. This machine is number
// SLURM_NODEID of them. Garbage counts as no variable.
//
// Open MPI's binding is its default if OMPI_MCA_orte_bound_at_launch is set, no binding option has left its variable, and OMPI_COMMAND is
// `program`: if the launcher has started another command, such as taskset or a script, the mask may be its doing.
LocalRanks local_ranks(const Variables& environment, const std::string& program);

// The process that has started this rank: the nearest ancestor that began without `variable`, or whose environment this user may not
// read. 0 if it is not visible, as in a container of its own.
pid_t launcher_of(const char* variable);

}  // namespace isonorm
