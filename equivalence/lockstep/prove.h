// prove(): trains the reference, its controls, the forms and the negative controls in lockstep and judges them.
#pragma once

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// Trains layer_norm, `options.controls` copies of it moved by one ulp, every form with raw parameters and the two
// negative controls on the same batches from one initialisation (where `options.against` names another device,
// layer_norm there, too), and compares loss, gradients and weights at every step; see criterion.h for the verdicts.
// `progress` is called after every step. Throws on options that make no model, where `against` is the device of the
// reference, on bad data (ErrorKind::invalid) and unreadable files (ErrorKind::io).
ProofResult prove(const ProofOptions& options, const ProgressCallback& progress = {});

}  // namespace isonorm::equivalence
