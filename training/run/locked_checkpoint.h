// LockedCheckpoint: the checkpoint that a training continues from, with locks on the files that it will write.
#pragma once

#include <optional>

#include "io/checkpoint.h"
#include "io/unfinished.h"
#include "training/run/trainer_options.h"

namespace isonorm::training {

// The checkpoint that a training continues from. While the object lives, no other process trains into the files
// TrainerOptions::checkpoint and best.
struct LockedCheckpoint {
  // With MPI every rank makes one, and the first rank locks the files. Throws (io) if another process has locked a
  // file; throws as checkpoint_to_go_on_from(); and throws Disagreement if ranks read different files.
  explicit LockedCheckpoint(const TrainerOptions& options);

  const io::NameLock lock, best_lock;
  std::optional<NewestCheckpoint> newest;  // none: there is no file yet
};

}  // namespace isonorm::training
