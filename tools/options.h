// The options that `prove` and `train` share, and what the parser cannot check about them.
#pragma once

#include "equivalence/options.h"
#include "tools/verb.h"

namespace isonorm::tools {

// Adds --model --data --width --depth --heads --patch --context --affine --eps --optimizer --lr --warmup --weight-decay
// --clip --steps --batch
// --dtype --seed --threads, bound to `o`, whose values are the defaults.
void add_shared_options(CLI::App& command, equivalence::ProofOptions& o);

// Throws UsageError naming the option that has no meaning, or none together with another.
void check_shared_options(const CLI::App& command, const equivalence::ProofOptions& o);

}  // namespace isonorm::tools
