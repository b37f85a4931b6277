// The wrong trainings that a verdict is held against: what they reach is what a bound has to stay below.
#pragma once

#include <span>

#include "equivalence/lockstep/lockstep.h"

namespace isonorm::equivalence {

// The records of what is trained wrongly beside models of these options. All begin as the reference's function and
// leave it by training alone: weights converted once and then trained plainly (projected_once; compressed_plain, where
// norms have no gains). Neither exists where a tied head stands behind learned gains, since it reads the means of the
// table's rows, nor with dropout or layer scale on branches, which act on raw weights, nor with a model or
// connections of a program's own, whose other forms may be other functions: there one batch is exchanged, and gains, where norms have
// some and are this library's, are not trained.
std::vector<RunResult> wrong_records(const training::TrainingOptions& options);

// Adds the trainings of wrong_records(options) to `all`, from the parameters of `initial` (a raw model). `other` is
// what an exchanged batch shows at step kNegativeSteps / 2.
void add_wrong(Lockstep& all, const training::TrainingOptions& options, const nn::Module& initial,
               std::span<RunResult> records, const training::Examples& other);

}  // namespace isonorm::equivalence
