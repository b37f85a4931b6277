// The options of a proof, and errors about them.
#pragma once

#include <string_view>

#include "equivalence/lockstep/prove.h"
#include "training/options/option.h"

namespace isonorm::services {

// Limits for the number of controls of a proof.
inline constexpr training::Limits kControls = training::from(1);

// Returns true if a proof has the option of a training. --forms names the forms of a proof, and a proof has one dtype
// throughout.
bool is_of_proofs(std::string_view name);
// Throws UsageError if the options of a proof contradict each other.
void check_proof(const equivalence::ProofOptions& o);

}  // namespace isonorm::services
