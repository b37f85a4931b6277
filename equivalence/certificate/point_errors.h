// The certificate's errors at random points: how far the gradients (or logits) of every form, in f64, f32 and bf16, are
// from Pre-LN's in f64, beside how far Pre-LN's own are.
#pragma once

#include "equivalence/certificate/trajectory.h"

namespace isonorm::equivalence {

// The forms that are certified, in the order of the arrays below.
inline constexpr nn::StreamForm kCertifiedForms[] = {nn::StreamForm::rms_norm, nn::StreamForm::crms_norm,
                                                     nn::StreamForm::crms_isometric};

// What is looked at: gradients, |g - g_ref| of every parameter relative to the largest entry of the tensor (of all
// tensors for the biases of keys); or logits, |y - y_ref| relative to the largest.
enum class Looked { gradients, logits };

// Of one architecture in one dtype: the largest deviation at each point, in units of the dtype's eps.
struct PointErrors {
  Architecture architecture;
  DType dtype;
  std::vector<double> own = {};       // Pre-LN in this dtype, summed in another order; of logits also moved by one ulp
  std::vector<double> forms[3] = {};  // raw weights, mapped in the forward
  std::vector<double> plain = {};     // RMSNorm on weights recentred once; none for a tied head behind gains
  std::vector<double> rounded[3] = {};  // bf16: the forms, their maps computed in bf16; none where norms have gains
};

// At `points` points: every weight drawn anew with a mean of half its size, and rounded to the dtype; a batch of made
// examples. Pre-LN's own error is that of the same model with the coordinates of its stream, and the examples of the
// batch, in reverse order: an exact symmetry, so that only rounding differs, in f64 too. Gradients are compared in raw
// coordinates.
PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on = {});

// exp of the mean of logarithms: what a few points with a much larger error do not dominate. NaN of nothing.
double geometric_mean(const std::vector<double>& values);

}  // namespace isonorm::equivalence
