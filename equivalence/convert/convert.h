// Conversion of a checkpoint between the forms of its residual stream: pure functions on named tensors, computed in f64
// and rounded once. Gains and biases of norms are folded into their readers, layer scales into their writers, and a
// tied head gets its own weight. If something cannot be converted exactly, it is refused with the tensor's name and the
// reason. Source: 2305.14858, sections 3.1 and 3.2; docs/conversion.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/convert/pieces.h"
#include "equivalence/convert/state.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The change of a tensor: one row of the table.
struct TensorChange {
  std::string name;
  std::string what;                   // "recentred", "gain folded, compressed", "dropped: folded into its readers", ...
  std::optional<Dims> before, after;  // its shape; nothing if it did not exist before, or does not exist after
};

struct Conversion {
  TensorMap exact;     // the result in f64
  TensorMap state;     // the same, rounded once to each tensor's own format, or to the requested one
  streams::Plan plan;  // of the result
  std::vector<TensorChange> changes;
  std::set<std::string> half;  // the f16 tensors of `state` (LazyState)
};

// Converts the state to the form `to`, in the order of plan.places. format: the format of the result's floating
// tensors; by default each keeps its own. Writers are centred (S1), readers compressed (S3), and both expanded on the
// way back (S7). A kept gain that is stored as 1+w is 1 + w in the result. A plan with a rotation is converted to its
// own form: writers become Q^T W, readers A Q, and a tied head gets its own weight.
//
// Throws as check_plan(), check_forms() and check_values(), if a writer of rms_norm is not zero-mean (no LayerNorm
// computes that), or if a result does not fit its format.
Conversion convert(const TensorMap& state, const streams::Plan& plan, streams::Form to,
                   std::optional<NumberFormat> format = {});

// Throws if there is nothing to convert: to a form without norms, or to the present form without a rotation. Also if a
// norm is to keep its gain on coordinates that have no place for it, and as check_form().
void check_forms(const streams::Plan& from, streams::Form to);

// The names of the result's tensors in the order of the file: kept gains and biases, then unit by unit the tensors that
// are made from it, and the heads that are untied last. A bias need not exist.
std::vector<std::string> order_of_result(const streams::Plan& from, const std::vector<Unit>& units);

// Checks that a writer of an RMSNorm model is zero-mean along the stream. It may come in pieces of the same format.
class ZeroMean {
 public:
  void add(const Tensor& writer, int dim, NumberFormat format);
  // Throws if the writer is not zero-mean up to rounding to the format: |mean| <= eps max |w|, or a step between
  // subnormal numbers.
  void check_writer(const std::string& name) const;

 private:
  double off_ = 0, size_ = 0;
  NumberFormat format_ = DType::f64;
};

// Throws, naming the tensor, if a tensor that a conversion maps has NaN or infinity.
void check_values(const TensorMap& state, const streams::Plan& plan);

// convert() for a piece (pieces.h) after with_gains(), of a checkpoint that check_plan() passed as a whole. Adds
// the means of the writers of an rms_norm model to `means`, for a verdict on all pieces of a writer.
using ZeroMeans = std::map<std::string, ZeroMean>;
Conversion convert_piece(const Piece& piece, streams::Form to, std::optional<NumberFormat> format, ZeroMeans& means);

}  // namespace isonorm::equivalence
