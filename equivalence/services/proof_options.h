// Options of a proof as words, and their errors.
#pragma once

#include <string_view>

#include "equivalence/lockstep/result.h"
#include "training/options/option.h"

namespace isonorm::services {

// The number of control runs that a proof can have.
inline constexpr training::Limits kControls = training::from(1);

// Returns true if a proof has the option of a training. --forms names the forms of a proof, and a proof has one dtype throughout.
bool is_of_proofs(std::string_view name);
// Throws UsageError if the options of a proof contradict each other.
void check_proof(const equivalence::ProofOptions& o);

}  // namespace isonorm::services
