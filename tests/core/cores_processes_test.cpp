// The cores that processes use under libgomp's variables, masks and launchers. Each case starts a process, because
// libgomp pins a process before its main().
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/system/cores.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;

namespace {

// The output of print_cores. words: variables and commands that start it, as in a shell.
std::string said(const std::string& words, const char* program = ISONORM_PRINT_CORES) {
  const std::string command = text(
      "env -u OMP_NUM_THREADS -u OMP_PROC_BIND -u OMP_PLACES -u GOMP_CPU_AFFINITY -u PMIX_RANK -u PMI_RANK -u "
      "SLURM_CPUS_ON_NODE ",
      words, ' ', program, " 2>&1");
  std::FILE* const out = popen(command.c_str(), "r");
  REQUIRE(out);
  std::string all;
  for (int c; (c = std::getc(out)) != EOF;) all += static_cast<char>(c);
  CHECK(pclose(out) == 0);
  return all;
}

}  // namespace

TEST_CASE("processes under libgomp's variables, a mask and a launcher") {
  const Cores mine = mask_of(0);
  if (const double quota = cores_of_groups(""); mine.size() < 2 || (quota > 0 && quota <= 1)) {
    WARN("skipped: the process has one core");
    return;
  }
  const int a = mine[0], b = mine[1];
  const std::string first = text(a), second = text(b), both = text(a, b == a + 1 ? "-" : "+", b),
                    two = text("taskset -c ", a, ',', b, ' '), one = text("taskset -c ", b, ' ');
  // libgomp has set the mask of main(), which does not change. All other threads run on both cores.
  const std::string spread = text("threads 2, main ", first, ", workers ", both, ", started ", both, '\n');
  const std::string obeyed = text("threads 1, main ", second, ", workers none, started ", second, '\n');

  SECTION("a mask by taskset") {
    CHECK(said(two) == text("threads 2, main ", both, ", workers ", both, ", started ", both, '\n'));
    CHECK(said(one) == obeyed);
  }
  SECTION("libgomp pins the main thread") {
    CHECK(said("OMP_PROC_BIND=true " + two) == spread);
    CHECK(said("OMP_PROC_BIND=spread " + two) == spread);
    CHECK(said("OMP_PLACES=threads " + two) == spread);
    CHECK(said("OMP_PLACES='{" + first + "},{" + second + "}' " + two) == spread);
    CHECK(said("GOMP_CPU_AFFINITY='" + first + ' ' + second + "' " + two) == spread);
  }
  SECTION("libgomp pins it to the one place that was asked for") {
    CHECK(said("OMP_PLACES='{" + second + "}' " + two) == obeyed);
    CHECK(said("GOMP_CPU_AFFINITY=" + second + ' ' + two) == obeyed);
  }
  SECTION("libgomp pins it within a mask of one core") {
    CHECK(said("OMP_PROC_BIND=true " + one) == obeyed);
    CHECK(said("OMP_PLACES=cores " + one) == obeyed);
    CHECK(said("GOMP_CPU_AFFINITY='" + second + ' ' + first + "' " + one) == obeyed);
  }
  SECTION("a launcher with two cores has bound its rank to one") {
    const std::string rank = "OMPI_COMM_WORLD_LOCAL_SIZE=1 OMPI_MCA_orte_bound_at_launch=1 OMPI_COMMAND=./print_cores ";
    const std::string launcher = two + "sh -c '", end = "; exit $?'";
    const auto under = [&](const std::string& variables, const std::string& how) {
      return said(launcher + variables + how + ISONORM_PRINT_CORES + end + " #");
    };
    CHECK(under(rank, "taskset -c " + first + ' ') == spread);
    CHECK(under(rank + "OMP_PROC_BIND=true ", "taskset -c " + first + ' ') == spread);
    CHECK(under(rank + "OMPI_COMMAND=taskset ", one) == obeyed);
    const TempFolder folder;  // executed through a link, a process has the link's name, as python3 often has
    const std::string link = folder / "other_name", bound_link = "exec taskset -c " + first + ' ' + link;
    std::filesystem::create_symlink(ISONORM_PRINT_CORES, link);
    CHECK(said(launcher + rank + "OMPI_COMMAND=other_name taskset -c " + first + ' ' + link + end + " #") == spread);
    CHECK(said(launcher + rank + "OMPI_COMMAND=a_script sh -c \"" + bound_link + "\"" + end + " #") ==
          text("threads 1, main ", first, ", workers none, started ", first, '\n'));
    CHECK(under(rank + "OMPI_MCA_hwloc_base_binding_policy=core ", one) == obeyed);
    CHECK(under("OMPI_COMM_WORLD_LOCAL_SIZE=1 ", one) == obeyed);
    const std::string shared = text("main ", both, ", workers none, started ", both, '\n');
    CHECK(under("OMPI_COMM_WORLD_LOCAL_SIZE=2 ", "") == "threads 1, " + shared);
    CHECK(under("MPI_LOCALNRANKS=2 ", "") == "threads 1, " + shared);
    CHECK(under("PMIX_RANK=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0 ", "") == "threads 1, " + shared);
    CHECK(under("PMIX_RANK=0 SLURM_STEP_TASKS_PER_NODE=1 SLURM_NODEID=0 SLURM_CPUS_ON_NODE=1 ", "") ==
          "threads 1, " + shared);
  }
}

TEST_CASE("OMP_NUM_THREADS: the first of a list; anything but a number from 1 on counts as unset") {
  for (const char* set : {"3", "3,2", "' 3 , 2 '"})
    CHECK(said(text("OMP_NUM_THREADS=", set)).starts_with("threads 3, "));
  const std::string unset = said("");
  const std::string threads = unset.substr(0, unset.find(','));
  for (const char* set : {"''", "0", "-1", "many", "3x", ",2", "99999999999999999999"}) {
    CAPTURE(set);
    CHECK(said(text("OMP_NUM_THREADS=", set)).find(threads + ", ") != std::string::npos);  // libgomp complains, too
  }
}

TEST_CASE("a machine with more cores than a cpu_set_t holds") {
  CHECK(said("", ISONORM_PRINT_MANY_CORES) == "threads 3, main 0-1+2000, workers 0-1+2000, started 0-1+2000\n");
}
