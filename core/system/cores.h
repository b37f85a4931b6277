// Internal: the cores that this process may use, and its number of threads. A core is a logical CPU of Linux.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace isonorm {

using Cores = std::vector<int>;  // numbers of cores, ascending

// The mask of a thread or process: the cores that it may run on (sched_getaffinity). 0: the calling thread. Empty if
// the kernel does not say.
Cores mask_of(pid_t thread);

// The facts that decide the cores and the number of threads of a process.
struct Placement {
  Cores mask = {};    // the calling thread's mask
  Cores openmp = {};  // if libgomp has pinned the thread to one place, the cores in any of its places; else empty
  bool bound_by_default = false;  // Open MPI has bound the process to one core, and nobody asked for a binding
  int ranks = 1;                  // the launcher's processes on this machine, including this one
  Cores launcher = {};            // the launcher's mask; empty if there is no launcher or its mask is unknown
  int machine = 1;                // number of the launcher's or the machine's cores
  int allocated = 0;              // cores of this machine that Slurm has allocated; 0: unknown
  double quota = 0;               // CPU time that the control groups allow, in cores; 0: no limit
};

// The facts about this process, from its calling thread.
Placement placement();

struct CoreUse {
  Cores cores = {};     // the cores that its threads run on
  bool pinned = false;  // the calling thread's mask has fewer
  int ranks = 1;        // as in Placement
  int machine = 1;      // number of cores that the ranks share
  int share = 1;        // cores for one rank: machine / ranks, or less if a control group allows less; at least 1
  int threads = 1;      // number of threads: the number of cores, at most `share`
};

// Decides the cores and the number of threads. A mask that somebody set on purpose is obeyed. Two masks are not set on
// purpose. libgomp pins the main thread to its first place if OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY is set;
// the process then uses the cores in every place. Open MPI 4 by default binds one or two ranks to a core each; they
// then use the launcher's cores. If Slurm does not confine a job to the cores that it has allocated, the mask has more;
// the ranks then share the allocated cores.
CoreUse core_use(const Placement& p);

// The same for this process, decided at the first call.
const CoreUse& core_use();

// The CPU time, in cores, that this process's control groups allow: the least over its groups and their ancestors. 0:
// no limit.
// root: the folder that contains /proc and /sys; tests have their own. Sources: "Control Group v2" (cpu.max) and "CFS
// Bandwidth Control" (v1: cpu.cfs_quota_us, cpu.cfs_period_us) in the Linux kernel's documentation.
double cores_of_groups(const std::string& root);

}  // namespace isonorm
