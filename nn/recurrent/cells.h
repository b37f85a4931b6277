// One step of a recurrent layer: the cells of GRU (Cho et al., 1406.1078) and LSTM (Hochreiter & Schmidhuber, 1997),
// optionally with norms of the gates' inputs.
#pragma once

#include <vector>

#include "autograd/ops/norm.h"
#include "nn/linear.h"

namespace isonorm::nn {

enum class RecurrentNorm { none, layer, rms };
inline constexpr const char* kRecurrentNormNames[] = {"none", "layer", "rms"};
constexpr const char* name_of(RecurrentNorm n) { return kRecurrentNormNames[static_cast<size_t>(n)]; }

// uniform: as PyTorch, all parameters uniform in +-1/sqrt(hidden). orthogonal: as the layers of 1910.07467, the
// recurrent matrix of each gate is orthogonal. The input matrix of each gate is orthogonal, too, if it has `hidden`
// inputs; otherwise it is normal with deviation 0.01. Biases are 0.
enum class RecurrentInitialisation { uniform, orthogonal };

struct RecurrentOptions {
  int64_t inputs = 0, hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;  // each layer has a second cell, which goes from the last step to the first
  double dropout = 0;          // between layers, in training
  RecurrentNorm norm = RecurrentNorm::none;
  double p = 1;  // RMSNorm: the share of leading entries whose mean square divides (1910.07467, pRMSNorm)
  double eps = 1e-5;
  RecurrentInitialisation initialisation = RecurrentInitialisation::uniform;
  bool reset_first = false;  // GRU's reset gate acts before the recurrent product, as in 1406.1078, not after it
};

// The norm of a vector of gates or of a state: the gain begins as ones; LayerNorm also has a bias, which begins as
// zeros.
class GateNorm : public Module {
 public:
  GateNorm(int64_t width, const RecurrentOptions& options);

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  RecurrentNorm norm_;
  NormOptions options_;
  Parameter &weight_, &bias_;
};

// The computation of a step. A cell's state is `parts` tensors [batch, hidden]; the first is its output.
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
  Linear* after_reset_;                                                     // null: `recurrent_` has all three thirds
  GateNorm *input_gates_, *input_new_, *recurrent_gates_, *recurrent_new_;  // null: plain
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
  GateNorm *input_norm_, *recurrent_norm_, *state_norm_;  // null: plain
  Parameter& bias_;                                       // undefined in a plain cell
};

}  // namespace isonorm::nn
