#include "training/run/locked_checkpoint.h"

#include "core/error.h"
#include "distributed/world.h"
#include "training/run/identity.h"

namespace isonorm::training {
namespace {

std::string locked_by_first(const std::string& path) { return distributed::world().rank() == 0 ? path : ""; }

}  // namespace

LockedCheckpoint::LockedCheckpoint(const TrainerOptions& o)
    : lock(locked_by_first(o.checkpoint)), best_lock(locked_by_first(o.best)) {
  distributed::Group& ranks = distributed::world();
  ranks.barrier();  // reading starts after the files are locked
  newest = checkpoint_to_go_on_from(o.checkpoint);
  ranks.check_same(newest ? text(newest->path, " after step ", integer_at(newest->checkpoint.values, "step"))
                          : text("there is no ", o.checkpoint),
                   "checkpoint");
  if (!newest) return;
  const Scope scope(newest->path);
  complete(newest->checkpoint.values);
}

}  // namespace isonorm::training
