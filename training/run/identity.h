// Which training a checkpoint belongs to, and whether another one may continue it.
#pragma once

#include "io/checkpoint.h"
#include "training/run/trainer_options.h"

namespace isonorm::training {

// The options of the model that the values of a checkpoint describe.
ModelOptions model_of(const Metadata& values);
// Adds the values that a checkpoint of an older version lacks, as its training had them.
void complete(Metadata& values);

// What a checkpoint says of its training: the options without those that change nothing (names of files, threads), those
// of its model as describe() writes them; checksums of the data and of the weights of `init`.
Metadata identity(const TrainerOptions& options, const Source& source);

// The options that a checkpoint records for a resumed training, which may change them: is_kept().
Metadata kept(const TrainerOptions& options);

// The identity of a training that goes on after `step` steps from this checkpoint, read from `path`; `asked` is that of
// its options. Throws naming an option that differs; with --extend those of the update (kExtendable) may, and
// the entry "earlier" says what they were: "to step 300 with --lr 0.001 --steps 300". Weights that it began with need not
// be named.
Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainerOptions& options,
                   Metadata asked);

}  // namespace isonorm::training
