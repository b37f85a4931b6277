// Checks whether a model's loss is blind to a constant added to every row of its residual stream. If it is, the Pre-LN
// model is convertible. Measured by gradients at random points (docs/normalization.md):
//   F2  rows of the stream's gradient sum to 0: everything that reads the stream subtracts its mean
//   F3  writers' gradients sum to 0 along the stream: W may be replaced by P W
//   F4  readers' gradients sum to 0 along the stream: A may be replaced by A P (not behind a learned gain or bias)
//
//   const auto blind = equivalence::check_shift_blind(model, training::cross_entropy_of, batches);
//   if (!blind.convertible()) std::puts(blind.sentence().c_str());
//   // different: not convertible: the gradient of entry.weight sums along the stream to 3.1e-01 of its largest entry,
//   //   the bound is 1.7e-13 (4 of 4 writers)
//   //   likely cause: no final norm, ...
#pragma once

#include "equivalence/compare/compare.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

// The verdict is `equivalent` if F3 holds for every writer; else the reason names the first writer that violates it.
struct ShiftBlindness : Judgement {
  bool readers_blind = false, stream_blind = false;  // F4; F2 (false if no norm shows the stream)

  // The gradient of a writer, of a reader, or of the stream as the norm of this name reads it. size: |sum along the
  // stream| / largest entry of the gradient, both the largest over points. bound: 64 d eps, the rounding in a sum of d
  // terms.
  struct Sum : Deviation {
    streams::Role role = streams::Role::neutral;  // neutral: the stream
  };
  std::vector<Sum> parameters, streams;

  bool convertible() const { return equivalent(); }
};

// Draws the parameters `options.points` times, like compare_gradients(). Writers and readers are the ones with which
// the model was put on its stream (streams/parametrize.h). In other models `declared` names them, with role and
// stream_dim; undeclared writers are not examined. The stream itself is seen only through the norms of a model on a
// stream.
ShiftBlindness check_shift_blind(nn::Module& model, const Objective& loss, const Batches& batches,
                                 const CompareOptions& options = {},
                                 const std::vector<streams::NamedParameter>& declared = {});

}  // namespace isonorm::equivalence
