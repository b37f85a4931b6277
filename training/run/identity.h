// Identity of a training: which training a checkpoint belongs to, and whether another one may continue it.
#pragma once

#include "io/checkpoint.h"
#include "training/run/trainer_options.h"

namespace isonorm::training {

// Reads the options of the model from a checkpoint's values.
ModelOptions model_of(const Metadata& values);
// Adds values that checkpoints of older versions lack, as they were for these trainings.
void complete(Metadata& values);

// Identifies a training in its checkpoint: the options that change the result (not names of files or threads), the
// model's options as describe() writes them, and checksums of the data and of the weights in `init`.
Metadata identity(const TrainerOptions& options, const Source& source);

// The options that a checkpoint records although a resumed training may change them: is_kept().
Metadata kept(const TrainerOptions& options);

// Returns the identity of a training that continues after `step` steps from this checkpoint, which was read from
// `path`. `asked` is the identity that follows from its options. Throws if an option differs, and names it. With
// `extend` the options of the update (kExtendable) may differ, and the entry "earlier" has their former values: "to
// step 300 with --lr 0.001 --steps 300". The options need not name the initial weights again.
Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainerOptions& options,
                   Metadata asked);

}  // namespace isonorm::training
