#include "distributed/world.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "core/printed.h"
#include "core/system/cores.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "core/system/warning.h"
#include "distributed/transport.h"

namespace isonorm::distributed {
namespace {

// Warns if this rank may run on fewer cores than it would use.
void check_binding() {
  const CoreUse& use = core_use();
  const int cores = static_cast<int>(use.cores.size());
  const int wanted = std::getenv("OMP_NUM_THREADS") ? std::min(num_threads(), use.machine) : use.share;
  if (cores < wanted)
    warn(text("rank 0 may run on ", plural(cores, "core"), " and would use ", wanted, " (", plural(use.ranks, "rank"),
              " on ", plural(use.machine, "core"),
              "); if the launcher has bound it, mpirun --bind-to none or srun --cpu-bind=none lifts that"));
}

Group alone() {
  check_alone();
  return {};
}

// Leaves MPI when the process ends. If a rank ends early, the other ranks' next calls report it.
struct World {
  Group group = one_of_several() ? Group(mpi_world()) : alone();

  ~World() {
    if (group.size() == 1) return;
    try {
      group.end();
      finish_mpi();
      new Group(std::move(group));  // leaked, because a device's driver may be gone already, and the link needs it
    } catch (const std::exception& e) {
      std::this_thread::sleep_for(std::chrono::seconds(2));  // another rank reports the error and ends this one
      group.abort(e.what());
    }
  }
};

}  // namespace

Group& world() {
  static World world;
  static std::atomic<bool> checked = false;
  if (world.group.size() > 1 && world.group.rank() == 0 && !checked.exchange(true))
    check_binding();  // a warning handler may call world()
  return world.group;
}

bool one_of_several() { return launched_by_mpi(); }

std::string wait_to_tell(const std::exception& e) noexcept try {
  if (!one_of_several()) return {};
  const auto* common = dynamic_cast<const Disagreement*>(&e);
  const Group& group = world();
  if (group.rank() != (common ? common->speaker() : 0)) std::this_thread::sleep_for(std::chrono::seconds(2));
  return common ? "" : text(group.name_of(group.rank()), ": ");
} catch (...) {  // world() has failed: each process reports for itself
  return {};
}

void end_all(int code) noexcept try {
  if (!one_of_several()) return;
  Group& group = world();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // gives the launcher time to forward the output
  group.abort("", code);
} catch (...) {
}

int ended_by(const std::exception& e, const char* program) noexcept {
  const std::string rank = wait_to_tell(e);
  try {
    std::fputs(text(program, ": ", rank, printable(e.what()), '\n').c_str(), stderr);
  } catch (...) {  // out of memory
  }
  end_all(1);
  return 1;
}

}  // namespace isonorm::distributed
