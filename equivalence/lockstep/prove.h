// prove(): trains the reference, its controls, the forms and the negative controls in lockstep and judges them.
#pragma once

#include "equivalence/lockstep/result.h"

namespace isonorm::equivalence {

// Trains layer_norm, `options.controls` copies moved by one ulp, every form with raw parameters and the negative
// controls on the same batches from one initialisation. If `options.against` names another device, trains layer_norm
// there, too. Compares loss, gradients and weights at every step; criterion.h draws the verdicts. Calls `progress`
// after every step. Throws if options make no model, if `against` is the reference's device, on bad data
// (ErrorKind::invalid) and on unreadable files (ErrorKind::io).
ProofResult prove(const ProofOptions& options, const ProgressCallback& progress = {});

// Fills control, the largest deviations of the controls, reach and horizon (from the runs that are expected to be
// different). Gives every run without a `control` of its own the proof's, and judges all runs. The verdict of an
// interrupted proof is undecided.
void conclude(ProofResult& proof);

}  // namespace isonorm::equivalence
