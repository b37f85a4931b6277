// The certificate's errors at random points: the distance of the gradients (or logits) of every form, in f64, f32 and
// bf16, from Pre-LN's in f64, with the predicted distance of correct arithmetic that rounds.
#pragma once

#include "lab/probes/trajectory.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The forms that are compared, in the order of the arrays below: Pre-LN itself, then the certified forms.
inline constexpr streams::Form kPointForms[] = {streams::Form::layer_norm, streams::Form::rms_norm,
                                                streams::Form::crms_norm, streams::Form::crms_isometric};
inline constexpr size_t kPointFormCount = std::size(kPointForms);

// The quantity that is compared: gradients, |g - g_ref| of every parameter relative to the largest entry of the tensor
// (for key biases: of any tensor); or logits, |y - y_ref| relative to the largest.
enum class Looked { gradients, logits };

// The errors of a tensor at every point, in units of the dtype's eps. `predicted` is the root mean square over
// kPredictions rounding models (rounding_model.h).
struct TensorErrors {
  std::string name;
  std::vector<double> error = {}, predicted = {};        // the largest error of an entry
  std::vector<double> scale = {}, scale_predicted = {};  // <g, g_ref> / <g_ref, g_ref> - 1; 0 for key biases
};
using FormErrors = std::vector<TensorErrors>;

inline constexpr int kPredictions = 4;

// The errors of an architecture in a dtype.
struct PointErrors {
  Architecture architecture;
  DType dtype;
  Looked looked = Looked::gradients;
  int redrawn = 0;                         // points that were drawn again, at a kink of a ReLU
  FormErrors forms[kPointFormCount] = {};  // Pre-LN: summed in another order; other forms: raw weights, mapped in the
                                           // forward
  FormErrors plain = {};                   // RMSNorm on weights recentred once; empty unless has_plain()
  std::vector<double> rounded[kPointFormCount] = {};  // bf16: largest errors of forms with maps computed in bf16; none
                                                      // for Pre-LN, or if norms have gains

  // f32, gradients: the largest errors, in eps of bf16, if activations are kept for the backward in bf16.
  std::vector<double> kept[kPointFormCount] = {}, kept_plain = {};

  bool has_plain() const { return looked == Looked::gradients && !(architecture.tied() && architecture.affine); }
};

// Measures at `points` points: every weight drawn with a mean of half its size and rounded to the dtype, and a batch of
// two made examples (drawn_point.h). Pre-LN's own error is measured on the same model with the coordinates of its
// stream, and the examples of the batch, in reverse order. This is an exact symmetry, so only rounding differs, even in
// f64. Gradients are compared in raw coordinates. In f64 the prediction includes the reference's errors.
PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on = {});

}  // namespace isonorm::equivalence
