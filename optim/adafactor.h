// Adafactor: a second moment kept as its row and column means, and steps relative to the size of the weights.
#pragma once

#include <optional>

#include "optim/elementwise.h"

namespace isonorm::optim {

struct AdafactorOptions {
  double lr = 1e-2;              // the largest relative step
  double beta2_decay = -0.8;     // weight of a new square in the second moment: t^beta2_decay
  std::optional<double> eps1{};  // floor of the root of the second moment; by default eps of the parameter's dtype
  double eps2 = 1e-3;            // lower limit for rms(w) in the step size
  double d = 1;                  // upper limit for the root mean square of an update
  double weight_decay = 0;       // decoupled: w is multiplied by 1 - lr weight_decay before the step
};

// rms(x) = |x| / sqrt(numel); t counts the parameter's own steps from 1; beta = 1 - t^beta2_decay.
// alpha = max(eps2, rms(w)) min(lr, 1 / sqrt(t));  w *= 1 - lr weight_decay;
// rank 2 and above [..., n, m]: row = beta row + (1 - beta) mean over m of g^2, [..., n, 1]; column likewise over n,
// [..., 1, m];  v = row column / max(eps1, mean over n of row);  rank 0 and 1: v = beta v + (1 - beta) g^2;
// u = g / max(eps1, sqrt(v));  w -= alpha u / max(1, rms(u) / d).
// Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018, algorithms 4 and 5
// with relative step sizes, in the form of torch.optim.Adafactor (eps1 enters at the end). Parameters of f32, f64 or
// bf16; state "row_var" and "col_var", or "variance". Throws on options out of range.
class Adafactor : public ElementwiseGroups<Adafactor, AdafactorOptions> {
 public:
  using ElementwiseGroups::ElementwiseGroups;
  static constexpr const char* kName = "adafactor";
  static Group group_of(const AdafactorOptions& options);
  static Step step_with(const AdafactorOptions& options, double lr, int64_t t);
  bool replays() const override { return false; }   // the decay and the rate enter other kernels, too
  bool by_entry() const override { return false; }  // means are over rows and columns

 private:
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
};
extern template class ElementwiseGroups<Adafactor, AdafactorOptions>;

}  // namespace isonorm::optim
