// isonorm train refuses if a launcher has started several processes that cannot train together.
#include "tests/tools/small_run.h"

using namespace isonorm;

TEST_CASE("train refuses to be one of several processes that cannot train together, and names the variable") {
  const Folder f;
  const std::string train = "train +small -q --steps 1 --checkpoint @c";
  const struct {
    std::vector<std::string> environment;
    std::string names;
  } lost[] = {{{"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2"}, "WORLD_SIZE is 2"},  // torchrun
              {{"LOCAL_RANK=1"}, "LOCAL_RANK is 1"},
              {{"SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0"}, "SLURM_STEP_NUM_TASKS is 2"},  // srun
              {{"SLURM_PROCID=1"}, "SLURM_PROCID is 1"},
              {{"OMPI_COMM_WORLD_RANK=1"}, "OMPI_COMM_WORLD_RANK is 1"},  // mpirun's, without the number of ranks
              {{"PMI_RANK=1"}, "PMI_RANK is 1"},
              {{"FLUX_TASK_RANK=3"}, "FLUX_TASK_RANK is 3"},
              {{"JSM_NAMESPACE_SIZE=4"}, "JSM_NAMESPACE_SIZE is 4"},
              {{"MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0"}, "MPI_LOCALNRANKS is 2"},
              {{"OMPI_COMM_WORLD_SIZE=1", "WORLD_SIZE=2"}, "WORLD_SIZE is 2"}};
  for (const auto& [environment, names] : lost)
    f.refuses(train, 3, names + ": a launcher has started this process as one of several",
              {.environment = environment});
  CHECK(f.files() == 1);
  // Processes that are alone: started by torchrun, by a Slurm job's script, and by mpirun, which srun may have started.
  const std::vector<std::string> alone[] = {{"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1"},
                                            {"SLURM_NTASKS=4", "SLURM_PROCID=0"},
                                            {"SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", "OMPI_COMM_WORLD_SIZE=1"}};
  for (const auto& environment : alone) f.succeeds(train, {.environment = environment});
  f.succeeds("info @c", {.environment = {"WORLD_SIZE=2"}});  // not a training
}
