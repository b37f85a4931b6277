#include "distributed/world.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "distributed/mpi.h"
#include "distributed/transport.h"

namespace isonorm::distributed {
namespace {

// Leaves MPI where the process ends. A rank that ends early is told of by the others' next call.
struct World {
  Group group = launched_by_mpi() ? Group(mpi_world()) : Group();

  ~World() {
    if (group.size() == 1) return;
    try {
      group.end();
      finish_mpi();
    } catch (const std::exception& e) {
      group.abort(e.what());
    }
  }
};

}  // namespace

Group& world() {
  static World world;
  return world.group;
}

int ended_by(const std::exception& e, const char* program) noexcept try {
  if (!launched_by_mpi()) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
  Group& group = world();
  const auto* common = dynamic_cast<const Disagreement*>(&e);
  if (common && common->speaker() != group.rank())
    std::this_thread::sleep_for(std::chrono::seconds(5));  // the one that is to tell ends this one before
  std::fprintf(stderr, "%s: rank %d: %s\n", program, group.rank(), e.what());
  group.abort(e.what());
  std::abort();
} catch (...) {
  std::abort();
}

}  // namespace isonorm::distributed
