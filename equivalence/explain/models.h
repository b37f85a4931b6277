// Finds the formula of a layer or an optimizer from its inputs and outputs. All tensors are f64, contiguous.
#pragma once

#include <optional>
#include <string>

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm::equivalence {

// The largest |value - reference| over `scale`. NaN if a value is NaN. Shapes must be equal.
double off_by(const Tensor& value, const Tensor& reference, double scale);

// "0.25"; near 1 the difference from 1, "1 + 1.0e-07".
std::string factor_text(double factor);

// sum of g along dim| / largest entry, the largest over all rows; 0 if all sums are 0.
double sum_along(const Tensor& g, int dim);

// x [.., n] went into a norm, y [.., n] came out; gain and bias [n], undefined if it is not known that the norm has
// them.
struct NormRows {
  Tensor x, y, gain, bias;
};

// y = (gain + more_gain) c / sqrt(S / (n + more_divisor) + eps) + bias. c is x, or x without its mean for a layer norm.
// S is the sum of c^2; for a crms norm, the sum of x^2 plus (sum of x)^2 (autograd/ops/norm.h has the sources).
struct NormModel {
  NormKind kind = NormKind::layer;  // layer, rms or crms; crms_isometric is rms with a divisor that is 1 larger
  int more_divisor = 0;
  double more_gain = 0;
  double eps = 1e-5;

  Tensor of(const NormRows& rows) const;
  // The same with the eps, at least 0, that fits the rows best: 1 / s^2 = S / divisor + eps, with the factor s of a
  // row.
  NormModel with_eps_of(const NormRows& rows) const;
  double off(const NormRows& rows) const { return off_by(of(rows), rows.y, 0); }
};

// The simplest norm with the smallest rest; nothing if no norm is within `tolerance` of y's largest entry. Throws if
// shapes do not fit.
std::optional<NormModel> fit_norm(const NormRows& rows, double tolerance);

struct Activation {
  const char* name;
  Tensor (*of)(const Tensor& x);
};

// The function among GELU (erf), GELU (tanh), GELU (sigmoid), SiLU, ReLU and squared ReLU that maps x to y; null if
// none comes nearer to y than `tolerance` of its largest entry.
const Activation* fit_activation(const Tensor& x, const Tensor& y, double tolerance);

// A parameter before a step, its gradient, and the parameter after the step, in one shape.
struct UpdateRows {
  Tensor before, gradient, after;
};

// after = before - decay before - rate u, with u = g / (|g| + eps) or u = g. The first is the first step of Adam
// (Kingma & Ba, 1412.6980) and AdamW (Loshchilov & Hutter, 1711.05101) with corrected moments, the second is SGD. With
// a coupled decay, g is the gradient + coupled before.
struct UpdateModel {
  bool adam = true;
  double decay = 0, rate = 0, eps = 0, coupled = 0;

  Tensor of(const UpdateRows& rows) const;
  UpdateModel with_decay_of(const UpdateRows& rows) const;  // by least squares
  UpdateModel with_rate_of(const UpdateRows& rows) const;   // by least squares, together with the decay
  UpdateModel with_eps_of(const UpdateRows& rows) const;    // by search, 0 or 1e-16 to 1
  UpdateModel coupled_instead() const;                      // its decay added to the gradient
};

// Like fit_norm().
std::optional<UpdateModel> fit_update(const UpdateRows& rows, double tolerance);

}  // namespace isonorm::equivalence
