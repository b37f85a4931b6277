// The cores and threads of a process, computed from facts about it; and these facts, read from the variables of
// launchers.
#include "core/system/cores.h"

#include <unistd.h>

#include <map>

#include "core/system/launcher.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

Cores cores(int first, int count) {
  Cores all;
  for (int i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

LocalRanks by(const std::map<std::string, std::string>& variables) {
  return local_ranks(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      "isonorm");
}

}  // namespace

TEST_CASE("a process uses the cores of its mask") {
  const CoreUse all = core_use({.mask = cores(0, 64), .machine = 64});
  CHECK(all.cores == cores(0, 64));
  CHECK(all.threads == 64);
  CHECK_FALSE(all.pinned);
  const CoreUse some = core_use({.mask = cores(8, 4), .machine = 64});
  CHECK(some.cores == cores(8, 4));
  CHECK(some.threads == 4);
  CHECK_FALSE(some.pinned);
  CHECK(core_use({}).threads == 1);  // the kernel does not say
}

TEST_CASE("a quota limits the threads, and ranks divide it") {
  CHECK(core_use({.mask = cores(0, 64), .machine = 64, .quota = 2.5}).threads == 3);
  CHECK(core_use({.mask = cores(0, 64), .ranks = 2, .machine = 64, .quota = 8}).threads == 4);
  CHECK(core_use({.mask = cores(0, 64), .ranks = 16, .machine = 64, .quota = 8}).threads == 1);
}

TEST_CASE("a process that libgomp has pinned uses the cores of all places") {
  const CoreUse use = core_use({.mask = {5}, .openmp = cores(4, 8), .machine = 64});
  CHECK(use.cores == cores(4, 8));
  CHECK(use.threads == 8);
  CHECK(use.pinned);
}

TEST_CASE("ranks divide the cores of their machine") {
  const CoreUse unbound = core_use({.mask = cores(0, 64), .ranks = 4, .launcher = cores(0, 64), .machine = 64});
  CHECK(unbound.cores == cores(0, 64));
  CHECK(unbound.threads == 16);
  CHECK(unbound.share == 16);
  // In a container with 8 of 64 cores, the launcher has 8.
  CHECK(core_use({.mask = cores(0, 8), .ranks = 2, .launcher = cores(0, 8), .machine = 8}).threads == 4);
  CHECK(core_use({.mask = cores(0, 2), .ranks = 7, .launcher = cores(0, 2), .machine = 2}).threads == 1);
}

TEST_CASE(
    "Open MPI's default binding to one core gives way to the launcher's cores, and a binding on purpose does not") {
  const Placement default_binding{
      .mask = {7}, .bound_by_default = true, .ranks = 2, .launcher = cores(0, 64), .machine = 64};
  const CoreUse use = core_use(default_binding);
  CHECK(use.cores == cores(0, 64));
  CHECK(use.threads == 32);
  CHECK(use.pinned);

  Placement purpose = default_binding;
  purpose.bound_by_default = false;
  CHECK(core_use(purpose).cores == Cores{7});
  CHECK(core_use(purpose).threads == 1);
  CHECK(core_use(purpose).share == 32);
  CHECK_FALSE(core_use(purpose).pinned);

  Placement unseen = default_binding;  // the launcher is outside of the container
  unseen.launcher = {};
  CHECK(core_use(unseen).cores == Cores{7});
  CHECK(core_use(unseen).share == 32);

  Placement elsewhere = default_binding;  // the launcher cannot have set this mask
  elsewhere.launcher = cores(8, 8);
  CHECK(core_use(elsewhere).cores == Cores{7});

  Placement both = default_binding;  // OMP_PROC_BIND on two hyperthreads of a core
  both.openmp = {7, 39};
  CHECK(core_use(both).threads == 32);
}

TEST_CASE("ranks divide the cores that Slurm has allocated, whether or not it confines them") {
  const Placement unconfined{.mask = cores(0, 64), .ranks = 2, .launcher = cores(0, 64), .machine = 64, .allocated = 4};
  const CoreUse use = core_use(unconfined);
  CHECK(use.machine == 4);
  CHECK(use.share == 2);
  CHECK(use.threads == 2);
  CHECK(use.cores == cores(0, 64));
  CHECK(core_use({.mask = cores(0, 64), .machine = 64, .allocated = 4}).threads == 4);

  Placement confined = unconfined;  // the mask is obeyed
  confined.mask = {5};
  CHECK(core_use(confined).threads == 1);
  CHECK(core_use(confined).share == 2);
  confined.mask = cores(4, 4);
  CHECK(core_use(confined).threads == 2);

  Placement fewer = unconfined;  // a container has fewer cores than Slurm has allocated
  fewer.mask = fewer.launcher = cores(0, 2);
  fewer.machine = 2;
  CHECK(core_use(fewer).machine == 2);
  CHECK(core_use(fewer).threads == 1);
}

TEST_CASE("launchers say how many ranks a machine has") {
  CHECK(by({}).count == 1);
  CHECK(by({}).variable == nullptr);
  CHECK(by({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}).count == 4);
  CHECK(by({{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}).variable == std::string("OMPI_COMM_WORLD_LOCAL_SIZE"));
  CHECK(by({{"MPI_LOCALNRANKS", "3"}}).count == 3);
  CHECK(by({{"MPI_LOCALNRANKS", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).count == 2);
  CHECK(by({{"MPI_LOCALNRANKS", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}).variable == std::string("MPI_LOCALNRANKS"));
  for (const char* garbage : {"", "0", "-2", "two", "2x", "99999999999999999999"}) {
    CHECK(by({{"OMPI_COMM_WORLD_LOCAL_SIZE", garbage}}).count == 1);
    CHECK(by({{"OMPI_COMM_WORLD_LOCAL_SIZE", garbage}}).variable == nullptr);
  }
  CHECK(by({{"SLURM_CPUS_ON_NODE", "16"}}).allocated == 16);
}

TEST_CASE("srun says it with a list of machines, which counts for ranks that know each other") {
  const auto ranks = [](const char* list, const char* node) {
    return by({{"PMIX_RANK", "0"}, {"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}}).count;
  };
  CHECK(ranks("4", "0") == 4);
  CHECK(ranks("2(x3),1", "0") == 2);
  CHECK(ranks("2(x3),1", "2") == 2);
  CHECK(ranks("3,2(x2),5", "2") == 2);
  CHECK(ranks("3,2(x2),5", "3") == 5);
  for (const char* wrong : {"", "x", "2(x", "2(x)", "2(x0)", "0", "-3", "2,,", "(x2)"}) CHECK(ranks(wrong, "1") == 1);
  CHECK(ranks("4", "1") == 1);
  CHECK(by({{"SLURM_STEP_TASKS_PER_NODE", "4"}, {"SLURM_NODEID", "0"}}).count ==
        1);  // srun --pty bash with one process
}

TEST_CASE("Open MPI binds by default if it has bound the program itself and no variable asks for a binding") {
  const std::pair<const std::string, std::string> bound{"OMPI_MCA_orte_bound_at_launch", "1"};
  const auto by = [&](std::map<std::string, std::string> variables) {
    variables.insert({"OMPI_COMMAND", "../tools/isonorm"});
    return ::by(variables);
  };
  CHECK(by({bound}).bound_by_default);
  for (const char* other : {"taskset", "./isonorm.sh", "bash", "isonorm/", ""})
    CHECK_FALSE(by({bound, {"OMPI_COMMAND", other}}).bound_by_default);
  CHECK_FALSE(::by({bound}).bound_by_default);
  CHECK_FALSE(by({}).bound_by_default);
  CHECK_FALSE(by({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).bound_by_default);
  // The variables that mpirun 4.1 sets for --bind-to, -bind-to-core, --cpu-list, --cpu-set, --cpus-per-proc, --rankfile
  // and --map-by.
  for (const char* name : {"hwloc_base_binding_policy", "hwloc_base_bind_to_core", "hwloc_base_cpu_list",
                           "hwloc_base_cpu_set", "rmaps_base_cpus_per_rank", "orte_rankfile"})
    CHECK_FALSE(by({bound, {std::string("OMPI_MCA_") + name, "1"}}).bound_by_default);
  for (const char* mapping : {"slot:PE=2", "socket:pe=4"})
    CHECK_FALSE(by({bound, {"OMPI_MCA_rmaps_base_mapping_policy", mapping}}).bound_by_default);
  CHECK(by({bound, {"OMPI_MCA_rmaps_base_mapping_policy", "ppr:1:node"}}).bound_by_default);  // one rank per machine
}

TEST_CASE("the launcher of a process is its nearest ancestor without the variable") {
  CHECK(launcher_of("ISONORM_NO_SUCH_VARIABLE") == getppid());
  CHECK(launcher_of("PATH") != getppid());  // every ancestor has PATH, up to process 1 or another user's process
}

TEST_CASE("the mask of a process has the cores that it may run on") {
  const Cores mask = mask_of(0);
  CHECK_FALSE(mask.empty());
  CHECK(std::ranges::is_sorted(mask));
  CHECK(mask_of(getpid()) == mask);
  CHECK(core_use().threads >= 1);
}
