// The certificate's errors at random points: the distance of the gradients (or logits) of every form, in f64, f32 and
// bf16, from Pre-LN's in f64; the predicted distance of correct arithmetic that rounds; and the verdicts.
#pragma once

#include <cmath>

#include "lab/probes/rounding_model.h"
#include "lab/probes/trajectory.h"

namespace isonorm::equivalence {

// A random point: weights and a batch, rounded to a dtype and held in f64.
class DrawnPoint {
 public:
  DrawnPoint(const Architecture& a, DType dtype, uint64_t seed);

  // Draws weights and a batch of two random examples. The entries of a parameter whose initial values have root mean
  // square r are normal with the same root mean square and mean r / sqrt(5), half their standard deviation. Draws again
  // while an input of a ReLU (width 2: a row) is within four times its predicted error of 0: at a kink the gradient
  // jumps, and rounding can cause an error of any size. In bf16 a hundredth of the inputs are that close, so a point
  // takes a few draws. Returns the number of rejected draws; throws after 1000.
  int next();

  const nn::Module& raw() const { return *raw_; }
  const training::Examples& batch() const { return batch_; }
  const training::TrainingOptions& exact() const { return exact_; }  // in f64
  DType dtype() const { return dtype_; }

  // The rounding model of a form at this point, each time with other errors.
  std::unique_ptr<RoundingModel> rounded_model(streams::Form form);

 private:
  void draw();
  bool at_a_kink();

  training::TrainingOptions exact_;
  DType dtype_;
  Generator weights_, errors_;
  uint64_t drawn_ = 0;
  std::unique_ptr<nn::Module> raw_;
  training::Examples batch_;
};

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

// Measures the errors at `points` random points (DrawnPoint), with weights and batch rounded to the dtype. Pre-LN's own
// error is measured on the same model with the coordinates of its
// stream, and the examples of the batch, in reverse order. This is an exact symmetry, so only rounding differs, even in
// f64. Gradients are compared in raw coordinates. In f64 the prediction includes the reference's errors.
PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on = {});

// --- verdicts: are the errors rounding errors of correct arithmetic? Every architecture and form is judged alone. ---

// The error of a tensor at a point is divided by the predicted one, or by the median prediction over the points if that
// is larger (four predictions may all be small by chance). Limits, over the tensors of an architecture and form:
//   kMedianLimit   for the median over the points
//   kLargestLimit  for the largest
//   kScaleLimit    for |mean| of the errors of the scale
// They are chosen with room above the errors of correct arithmetic. `isonorm prove --certificate --seed N` prints, over
// seeds 1 to 6 and all architectures and forms, at most (f64, f32, bf16)
//   0.77, 1.71, 1.23 for the median;  2.97, 9.25, 5.39 for the largest;  0.53, 1.20, 0.94 for the scale
// Plain RMSNorm's gradients have at least 5.7. The prediction ignores the errors of exp, erf and tanh, and the order of
// sums.
inline constexpr double kMedianLimit = 3, kLargestLimit = 26, kScaleLimit = 2;

// Running maximum of the values passed to take(), with the name of the largest. After a NaN the value is NaN.
struct Extreme {
  double value = 0;
  std::string of = {};

  void take(double v, const std::string& whose) {
    if (!std::isnan(value) && larger(value, v) != value) value = v, of = whose;
  }
};

struct PointVerdict {
  Extreme median, largest, scale;  // over the tensors
  double least_seen = 0,
         always_seen = 0;  // one tensor's gradient times 1 + x is refused from these x on: the
                           // tensor that shows it most, and every tensor
  std::string reason;      // why it is refused; empty if it is not
  bool within() const { return reason.empty(); }
};

// Also refused: no tensors, a number of points other than `points`, numbers that are not finite, and a point at which
// all bits are equal, which means that it was compared with itself (accepted if may_be_equal).
PointVerdict judge(const FormErrors& errors, int points, DType dtype, bool may_be_equal = false);

// Judges one architecture in one dtype. Pre-LN itself and every form have to be within their limits, and plain RMSNorm,
// whose gradient is another one, must exceed the median's limit. Errors with activations kept in bf16 have no
// prediction: a form's error is divided by Pre-LN's own at the same point, or by the median of Pre-LN's errors if that
// is larger, since Pre-LN keeps the same number of activations. Logits of Pre-LN in reverse order may be equal: at
// width 2 sums of two commute.
struct ArchitectureVerdict {
  PointVerdict forms[kPointFormCount], plain;
  std::string reason;  // why it is refused; empty if it is not
  bool as_expected() const { return reason.empty(); }
};
ArchitectureVerdict judge(const PointErrors& errors, int points);

// Returns for each point the largest error of all tensors.
std::vector<double> largest_errors(const FormErrors& errors);

// "Pre-LN itself", "crms_norm".
inline const char* name_of_form(size_t f) { return f == 0 ? "Pre-LN itself" : name_of(kPointForms[f]); }

}  // namespace isonorm::equivalence
