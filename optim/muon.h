// Muon: momentum, orthogonalised, for the matrices inside a network; AdamW for everything else.
#pragma once

#include "optim/adam.h"

namespace isonorm::optim {

// The factor on the learning rate for a matrix [rows, columns].
enum class MuonScale {
  original,            // sqrt(max(1, rows / columns)): Jordan
  match_rms_adamw,     // 0.2 sqrt(max(rows, columns)), so that AdamW's rates can be kept: Liu et al., 2502.16982
  spectral_unclamped,  // sqrt(rows / columns): Bernstein, "Deriving Muon", 2025
  none                 // 1
};

struct MuonOptions {
  double lr = 1e-3;
  double momentum = 0.95;
  double weight_decay = 0.1;  // decoupled: w is multiplied by 1 - lr weight_decay before the step
  bool nesterov = true;
  MuonScale scale = MuonScale::original;
  int ns_steps = 5;
  double a = 3.4445, b = -4.7750, c = 2.0315;  // coefficients of the Newton-Schulz polynomial
  double eps = 1e-7;                           // lower limit for the iteration's divisor, a norm
};

// X / max(|X|, eps), then `steps` times X <- a X + (b A + c A A) X with A = X X^T, computed for the orientation with
// fewer rows. With the default coefficients all singular values of the result are near 1 (0.7 to 1.2), except tiny
// singular values of X / |X|. x [rows, columns] of f32 or f64; no graph.
Tensor newton_schulz(const Tensor& x, const MuonOptions& options);

// Matrices:  b += (1 - momentum) (gradient - b) (b starts at 0);  u = gradient + momentum (b - gradient), without
// nesterov u = b;  w *= 1 - lr weight_decay;  w -= lr scale newton_schulz(u). Jordan, "Muon: An optimizer for hidden
// layers in neural networks", 2024; the semantics of torch.optim.Muon, except that the iteration runs in the
// accumulation type of the parameter (PyTorch: bf16). The caller says which matrices are hidden (embeddings and heads
// are usually not):
//   optim::Muon opt({{hidden, {.lr = 0.02}}}, {{rest, {.lr = 1e-3}}});
// Parameters of f32, f64 or bf16, matrices first in the order of the state; state "momentum_buffer" for matrices, as
// AdamW for the rest. Throws on options out of range and on a matrix that is not of rank 2.
class Muon : public ElementwiseOptimizer {
 public:
  explicit Muon(const std::vector<Tensor>& matrices, MuonOptions options = {});
  explicit Muon(const std::vector<ParameterGroup<MuonOptions>>& matrices,
                const std::vector<ParameterGroup<AdamWOptions>>& rest = {});
  bool replays() const override { return false; }   // the momentum average needs an update of its own
  bool by_entry() const override { return false; }  // orthogonalises whole matrices

 private:
  Step step_of(int group, int64_t t) const override;
  Tunable tunable(int group) override;
  void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) override;
  std::vector<MuonOptions> options_;  // of the first groups, which hold matrices
  std::vector<AdamWOptions> rest_;    // of the other groups
};

}  // namespace isonorm::optim
