#include "core/system/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/printed.h"

namespace isonorm {
namespace {

int positive(const Variables& environment, const char* name) {
  const char* said = environment(name);
  int n = 0;
  return said && read_number(std::string_view(said), n) && n > 0 ? n : 0;
}

// The number of tasks on node `node` in Slurm's list: 2 for the nodes 0 to 2 of "2(x3),1". 0 if the list has no such
// node.
int tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    int tasks = 0, nodes = 1;
    if (const size_t times = entry.find("(x"); times != entry.npos) {
      std::string_view number = entry.substr(times + 2);
      if (!number.ends_with(')') || !read_number(number.substr(0, number.size() - 1), nodes)) return 0;
      entry = entry.substr(0, times);
    }
    if (!read_number(entry, tasks) || tasks < 1 || nodes < 1) return 0;
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return 0;
}

// mpirun's options --bind-to, --cpu-list, --rankfile, --map-by ...:PE=2 and similar ones set these variables for the
// ranks.
bool asks_for_binding(const Variables& environment) {
  for (const char* name :
       {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_bind_to_core", "OMPI_MCA_hwloc_base_bind_to_socket",
        "OMPI_MCA_hwloc_base_cpu_list", "OMPI_MCA_hwloc_base_cpu_set", "OMPI_MCA_rmaps_base_cpus_per_rank",
        "OMPI_MCA_rmaps_rank_file_path", "OMPI_MCA_orte_rankfile"})
    if (environment(name)) return true;
  const char* mapping = environment("OMPI_MCA_rmaps_base_mapping_policy");
  std::string words(mapping ? mapping : "");
  std::ranges::transform(words, words.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return words.find("PE=") != words.npos;
}

std::string contents(pid_t process, const char* name) {
  std::ifstream file(text("/proc/", process, '/', name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The parent of a process. 0 if the process is gone or its parent is not visible here.
pid_t parent_of(pid_t process) {
  const std::string stat = contents(process, "stat");  // "12 (any name) S 11 ..."
  const size_t name_end = stat.rfind(") ");
  pid_t parent = 0;
  if (name_end != stat.npos && stat.size() > name_end + 4) {
    const std::string_view rest = std::string_view(stat).substr(name_end + 4);
    read_number(rest.substr(0, rest.find(' ')), parent);
  }
  return parent;
}

}  // namespace

LocalRanks local_ranks(const Variables& environment, const std::string& program) {
  LocalRanks ranks;
  const auto take = [&](const char* variable, int count) {
    if (count >= std::max(1, ranks.count))
      ranks.count = count, ranks.variable = variable;  // if there are two launchers, the one with more ranks counts
  };
  take("MPI_LOCALNRANKS", positive(environment, "MPI_LOCALNRANKS"));
  if (environment("PMIX_RANK") || environment("PMI_RANK")) {
    const char* list = environment("SLURM_STEP_TASKS_PER_NODE");
    take("SLURM_STEP_TASKS_PER_NODE", tasks_of_node(list ? list : "", positive(environment, "SLURM_NODEID")));
  }
  take("OMPI_COMM_WORLD_LOCAL_SIZE", positive(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"));
  ranks.allocated = positive(environment, "SLURM_CPUS_ON_NODE");
  const char* started = environment("OMPI_COMMAND");
  ranks.bound_by_default = environment("OMPI_MCA_orte_bound_at_launch") && !asks_for_binding(environment) && started &&
                           std::filesystem::path(started).filename() == program;  // Open MPI 4 gives no folder
  return ranks;
}

pid_t launcher_of(const char* variable) {
  const std::string begin = std::string(variable) + '=';
  pid_t process = getppid();
  for (; process > 0; process = parent_of(process)) {
    const std::string environment = '\0' + contents(process, "environ");
    if (environment.find('\0' + begin) == environment.npos) break;
  }
  return process;
}

}  // namespace isonorm
