// One step of a recurrent layer: the cells of GRU (Cho et al., 1406.1078) and LSTM (Hochreiter & Schmidhuber, 1997),
// optionally with norms of the gates' inputs.
#pragma once

#include <vector>

#include "nn/linear.h"
#include "nn/norm.h"

namespace isonorm::nn {

// uniform: as PyTorch, all parameters uniform in +-1/sqrt(hidden). orthogonal: as the layers of 1910.07467, the
// recurrent matrix of each gate is orthogonal. The input matrix of each gate is orthogonal, too, if it has `hidden`
// inputs; otherwise it is normal with deviation 0.01. Biases are 0.
enum class RecurrentInitialisation { uniform, orthogonal };

struct RecurrentOptions {
  int64_t inputs = 0, hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;      // each layer has a second cell, which goes from the last step to the first
  double dropout = 0;              // between layers, in training
  NormKind norm = NormKind::none;  // of the gates' inputs, and of LSTM's state: none, layer or rms
  double p = 1;  // RMSNorm: the share of leading entries whose mean square divides (1910.07467, pRMSNorm)
  double eps = 1e-5;
  RecurrentInitialisation initialisation = RecurrentInitialisation::uniform;
  bool reset_first = false;  // GRU's reset gate acts before the recurrent product, as in 1406.1078, not after it
};

// The computation of one step. A cell's state is `parts` tensors [batch, hidden]; the first is its output.
class Cell : public Module {
 public:
  // x [batch, time, in] -> the steps' inputs [batch, time, gates], computed for all steps in one product.
  virtual Tensor prepared(const Tensor& x) = 0;
  // The state after a step. prepared [batch, gates]: this step's part of prepared(x).
  virtual std::vector<Tensor> step(const Tensor& prepared, const std::vector<Tensor>& state) = 0;
  virtual int64_t parts() const = 0;
};

// With (r, z) = sigmoid of the first two thirds, n = tanh of the last:
//   plain   r, z: W_x x + b_x + W_h h + b_h;              n: W_n x + b_n + r (W_hn h + b_hn);   h' = (1 - z) n + z h
//   normed  r, z: N(W_x x + b_x) + N(W_h h), both thirds as one row;  n: N(W_n x + b_n) + r N(W_hn h)
// (PyTorch's gates and layout: weights [3 hidden, ...]; 1910.07467, the authors' layers "rlngru", "lngru".) With
// reset_first, W_hn (r h) replaces r (W_hn h) (ONNX's linear_before_reset = 0): `recurrent` has only the first two
// thirds, and `recurrent_new` has W_hn and b_hn.
class GruCell : public Cell {
 public:
  GruCell(int64_t inputs, const RecurrentOptions& options);
  Tensor prepared(const Tensor& x) override;
  std::vector<Tensor> step(const Tensor& prepared, const std::vector<Tensor>& state) override;
  int64_t parts() const override { return 1; }

 private:
  int64_t hidden_;
  Linear &input_, &recurrent_;
  Linear* after_reset_;                                                 // null: `recurrent_` has all three thirds
  Norm *input_gates_, *input_new_, *recurrent_gates_, *recurrent_new_;  // null: plain
};

// With (i, f, o) = sigmoid of the first, second and fourth quarter, g = tanh of the third: c' = f c + i g and
//   plain   gates: W_x x + b_x + W_h h + b_h;                          h' = o tanh(c')
//   normed  gates: N(W_x x) + N(W_h h) + b, each one row of 4 hidden;  h' = o tanh(N(c'))
// (PyTorch's gates and layout: weights [4 hidden, ...]; the authors' "rlnlstm", "lnlstm" add b twice.) State: h, c.
class LstmCell : public Cell {
 public:
  LstmCell(int64_t inputs, const RecurrentOptions& options);
  Tensor prepared(const Tensor& x) override;
  std::vector<Tensor> step(const Tensor& prepared, const std::vector<Tensor>& state) override;
  int64_t parts() const override { return 2; }

 private:
  int64_t hidden_;
  Linear &input_, &recurrent_;
  Norm *input_norm_, *recurrent_norm_, *state_norm_;  // null: plain
  Parameter& bias_;                                   // undefined in a plain cell
};

}  // namespace isonorm::nn
