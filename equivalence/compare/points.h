// Internal: compares two models at single points (loss, outputs, gradients, buffers) and along training trajectories,
// and gives the verdicts.
#pragma once

#include <cmath>
#include <span>

#include "equivalence/compare/compare.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/causes/cause.h"
#include "equivalence/lockstep/lockstep.h"

namespace isonorm::equivalence {

// A quantity that is compared at a point: B's deviation, and the largest deviation of the controls.
struct ComparedTensor {
  const char* quantity;  // "loss", "output", "gradient", "buffer"
  Pair pair;
  Offset off, control = {};
  // An input's gradient or a buffer: it can differ, but no verdict rests on it.
  bool secondary = false;

  Offset limit(DType dtype) const;
  // off / limit(); infinite for NaN.
  double share(DType dtype) const;
};

// Compares the loss or the gradients of `run` with `reference`, which has noted its `controls`.
ComparedTensor compared_loss(const Training& run, const Training& reference, std::span<const Training* const> controls);
std::vector<ComparedTensor> compared_gradients(const Training& run, const Training& reference,
                                               std::span<const Training* const> controls,
                                               const char* quantity = "gradient");

// Compares an input's gradient or a buffer, relative to the largest entry of the reference, or to `otherwise` if the
// reference is 0. Counts as rounding noise if the controls move it too far for a verdict.
ComparedTensor compared_secondary(const char* quantity, const std::string& name, const Tensor& value,
                                  const Tensor& reference, std::span<const Tensor> controls, double otherwise,
                                  DType dtype);

// How a tensor differs that exceeds its limit.
Deviation deviation_of(const ComparedTensor& s, DType dtype);

// Points until the first at which something differs.
class Points {
 public:
  Points(DType dtype, int points, bool may_be_identical)
      : dtype_(dtype), points_(points), may_be_identical_(may_be_identical) {
    result_.verdict = Verdict::different;
  }

  // The measurements at a point, counted from 1: the loss first, then the same others as at every point.
  void note(int point, const std::vector<ComparedTensor>& compared);
  bool differs() const { return result_.first_difference.has_value(); }
  const ComparedTensor& worst(std::span<const ComparedTensor> compared) const;
  // After the first point that differs, or the last one.
  Comparison judgement();

 private:
  // A quantity after the points so far: the quantity times 1 + `factor` would have been detected.
  struct Known {
    std::string name;
    double factor = INFINITY;
    bool secondary = false;
  };

  void conclude();

  DType dtype_;
  int points_;
  bool may_be_identical_;
  Comparison result_;
  std::vector<Known> known_;  // the loss, then the others
  double share_ = 0;
  bool moved_ = false;  // some control's gradient is not the first model's
};

// Gradients for causes per gradient of the comparison, at most.
inline constexpr int kCauses = 5;

struct Partners;

// Why two models differ on a batch, at A's present parameters.
Explained explain_at(nn::Module& a, nn::Module& b, const ParameterMap& map, const Partners& partners,
                     const Objective& loss, const training::Examples& batch, const CompareOptions& options, int budget);

// Judges a run that was trained in `all` with these controls and negative controls.
Comparison judge(RunResult run, std::span<const RunResult> controls, std::span<const RunResult> negative,
                 const Lockstep& all, DType dtype);

}  // namespace isonorm::equivalence
