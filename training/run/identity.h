// Identity of a training: which training a checkpoint belongs to, and whether another one may continue it.
#pragma once

#include "io/checkpoint.h"
#include "training/run/trainer_options.h"

namespace isonorm::training {

// The options of the model described in a checkpoint's values.
ModelOptions model_of(const Metadata& values);
// Adds values that checkpoints of older versions lack, as they were for these trainings.
void complete(Metadata& values);

// The identity that a checkpoint records: the options without irrelevant ones (file names, threads), the model's
// options as describe() writes them, and checksums of the data and of the weights of `init`.
Metadata identity(const TrainerOptions& options, const Source& source);

// The options that a checkpoint records although a resumed training may change them: is_kept().
Metadata kept(const TrainerOptions& options);

// The identity of a training that resumes after `step` steps from this checkpoint, read from `path`. asked: the
// identity of its options. Throws, naming the option, if one differs. With --extend the options of the update
// (kExtendable) may differ; the entry "earlier" then records the old values: "to step 300 with --lr 0.001 --steps 300".
// The initial weights need not be given again.
Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainerOptions& options,
                   Metadata asked);

}  // namespace isonorm::training
