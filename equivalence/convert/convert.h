// Conversion of a checkpoint between the forms of its residual stream: pure functions on named tensors, computed in f64
// and rounded once. Norms' gains and biases go into their readers, layer scales into their writers, and a tied head
// gets a weight of its own; what cannot be converted exactly is refused, with the tensor and the reason.
// Source: 2305.14858, sections 3.1 and 3.2; docs/conversion.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/convert/convertible.h"
#include "equivalence/convert/pieces.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// What happened to a tensor: one row of the table.
struct TensorChange {
  std::string name;
  std::string what;                   // "recentred", "gain folded, compressed", "dropped: folded into its readers", ...
  std::optional<Dims> before, after;  // its shape; nothing where it did not exist, or does not any more
};

struct Conversion {
  TensorMap exact;            // the result in f64
  TensorMap state;            // the same, rounded once to the format that each tensor had, or that was asked for
  streams::Placement layout;  // of the result
  std::vector<TensorChange> changes;
  std::set<std::string> half;  // of `state` (LazyState)
};

// The state in the coordinates of `to`, in the order of layout.places. format: of all floating tensors of the result; as
// before where not set. Writers are centred (S1), readers compressed (S3), both expanded on the way back (S7). A gain that is
// stored as 1+w, and kept, is 1 + w in the result. A layout with a rotation is converted to the form that it has: writers
// become Q^T W, readers A Q, and a tied head gets a weight of its own.
// Throws, naming tensor and reason, where
//   a form is none, or both are the same           a tensor is missing, unexpected, not floating or not finite
//   the width is below 2, or a size does not fit   a reader reads the bare stream, or through an unknown norm
//   two norms or tensors have one name             a gain, or a layer scale, stands on compressed coordinates
//   no reader takes up the bias of a norm          a writer of rms_norm is not zero-mean: no LayerNorm computes that
//   a norm keeps its gain, and the width changes
//   a name that conversion makes is taken          a result does not fit its format
Conversion convert(const TensorMap& state, const streams::Placement& layout, streams::Form to,
                   std::optional<NumberFormat> format = {});

// Throws where there is nothing to convert: to no norms, or to the form that it has without a rotation; where a norm is to keep
// its gain on coordinates that have no place for it; and as check_form().
void check_forms(const streams::Placement& from, streams::Form to);

// The same for a piece (pieces.h), behind with_gains(), of what check_convertible() passed as a whole; the means of the
// writers of an rms_norm model go to `means`, for a verdict on all of a writer's pieces.
using ZeroMeans = std::map<std::string, ZeroMean>;
Conversion convert_piece(const Piece& piece, streams::Form to, std::optional<NumberFormat> format, ZeroMeans& means);

}  // namespace isonorm::equivalence
