// Internal: the launcher (mpirun of Open MPI or MPICH, or srun) that started this process as one of several ranks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace isonorm {

using Variables = std::function<const char*(const char* name)>;  // an environment; null if it has no such variable

// The ranks on this machine, from the launcher's variables.
struct LocalRanks {
  int count = 1;                   // ranks on this machine, this process included; 1 without a launcher
  const char* variable = nullptr;  // the variable that says so; null without a launcher
  int allocated = 0;               // cores of this machine that Slurm has allocated to the job; 0: unknown
  bool bound_by_default = false;   // Open MPI 4 has bound the rank, and nobody asked for a binding
};

// Reads the number of ranks on this machine. Open MPI sets OMPI_COMM_WORLD_LOCAL_SIZE, and MPICH sets MPI_LOCALNRANKS.
// Under srun with --mpi, Slurm sets SLURM_STEP_TASKS_PER_NODE: "2(x3),1" means three machines with two ranks each and a
// fourth with one, and SLURM_NODEID is the number of this machine. A variable that cannot be read counts as unset.
//
// Open MPI's binding is its default if OMPI_MCA_orte_bound_at_launch is set, no binding option has left its variable,
// and OMPI_COMMAND is `program`, the name by which this process was executed. If the launcher has started another
// command, such as taskset or a script, that command may have set the mask.
LocalRanks local_ranks(const Variables& environment, const std::string& program);

// The process that has started this rank: the nearest ancestor that began without `variable`, or whose environment this
// user may not read. 0 if it is not visible, as in a container of its own.
pid_t launcher_of(const char* variable);

}  // namespace isonorm
