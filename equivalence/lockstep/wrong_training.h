// The wrong trainings against which a verdict is measured: a bound has to stay below their deviations.
#pragma once

#include <span>

#include "equivalence/lockstep/lockstep.h"

namespace isonorm::equivalence {

// The records of the wrong trainings for models with these options:
//   weights converted once, then trained plainly  projected_once; compressed_plain, if norms have no gains
//   one batch exchanged; gains not trained        instead, if mapped storage cannot hold the function: with a tied head
//                                                 that sees the means of the table's rows, and with dropout or layer
//                                                 scale on branches. Gains only if the norms have some.
//   centred embeddings                            also, if the first branch reads bare embeddings
//   mistakes of ranks                             also, with several ranks
//   one batch exchanged                           alone, for a program's own model or connections, whose other forms
//                                                 may be other functions
// Centred embeddings and mistakes of ranks differ from the start. The others begin as the reference's function and
// leave it by training alone.
std::vector<RunResult> wrong_records(const training::TrainingOptions& options);

// Adds the trainings of wrong_records(options) to `all`, from the parameters of `initial` (a raw model). other: the
// batch that is shown at step kNegativeSteps / 2 if a batch is exchanged.
void add_wrong(Lockstep& all, const training::TrainingOptions& options, const nn::Module& initial,
               std::span<RunResult> records, const training::Examples& other);

}  // namespace isonorm::equivalence
