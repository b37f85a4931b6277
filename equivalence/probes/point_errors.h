// The certificate's errors at random points: how far the gradients (or logits) of every form, in f64, f32 and bf16, are
// from Pre-LN's in f64, beside how far rounding takes right arithmetic.
#pragma once

#include "equivalence/probes/trajectory.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The forms that are looked at, in the order of the arrays below: Pre-LN itself, then those that are certified.
inline constexpr const auto& kPointForms = streams::kLayerNormForms;
inline constexpr size_t kPointFormCount = std::size(kPointForms);
static_assert(kPointForms[0] == streams::Form::layer_norm);

// What is looked at: gradients, |g - g_ref| of every parameter relative to the largest entry of the tensor (of all
// tensors for the biases of keys); or logits, |y - y_ref| relative to the largest.
enum class Looked { gradients, logits };

// Of one tensor at every point, in units of the dtype's eps. What is predicted is the root mean square over
// kPredictions models that round (rounding_model.h).
struct TensorErrors {
  std::string name;
  std::vector<double> error = {}, predicted = {};        // the largest of its entries
  std::vector<double> scale = {}, scale_predicted = {};  // <g, g_ref> / <g_ref, g_ref> - 1; 0 of key biases
};
using FormErrors = std::vector<TensorErrors>;

inline constexpr int kPredictions = 4;

// Of one architecture in one dtype.
struct PointErrors {
  Architecture architecture;
  DType dtype;
  Looked looked = Looked::gradients;
  int redrawn = 0;                         // points that were drawn anew, at a kink of a ReLU
  FormErrors forms[kPointFormCount] = {};  // Pre-LN summed in another order; of the others raw weights, mapped in the
                                           // forward
  FormErrors plain = {};                   // RMSNorm on weights recentred once: where has_plain()
  std::vector<double> rounded[kPointFormCount] = {};  // bf16: the largest of the forms with maps computed in bf16; none
                                                      // of Pre-LN, or where norms have gains

  // f32, of gradients: the largest errors, in eps of bf16, where activations wait for the backward in bf16.
  std::vector<double> kept[kPointFormCount] = {}, kept_plain = {};

  bool has_plain() const { return looked == Looked::gradients && !(architecture.tied() && architecture.affine); }
};

// At `points` points: every weight drawn anew with a mean of half its size, and rounded to the dtype; a batch of two
// made examples (drawn_point.h). Pre-LN's own error is that of the same model with the coordinates of its stream, and
// the examples of the batch, in reverse order: an exact symmetry, so that only rounding differs, in f64 too. Gradients
// are compared in raw coordinates. What is predicted in f64 holds the reference's errors too.
PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on = {});

}  // namespace isonorm::equivalence
