// The pointwise part of a recurrent layer's step, in one pass over memory forward and one backward.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// One GRU step: the new state [batch, hidden] (Cho et al., 1406.1078, with the reset gate placed as in PyTorch):
//   r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n);  n + z (h - n)
// a and u [batch, 3 hidden] are the contributions of the input and of the state to (r, z, n); h [batch, hidden] is the
// previous state. One floating dtype; bf16 is computed in f32. Throws if shapes, dtypes or devices do not fit.
Tensor gru_step(const Tensor& a, const Tensor& u, const Tensor& h);

struct LstmStep {
  Tensor output, cell;  // [batch, hidden]
};
// hidden: output is o tanh(cell). gate: output is o alone, for a caller that normalizes the cell in between.
enum class LstmOutput { hidden, gate };

// One LSTM step: output and cell (Hochreiter & Schmidhuber, 1997, with a forget gate):
//   i, f, o = sigmoid(a + u), g = tanh(a_g + u_g);  cell = f c + i g, output = o tanh(cell)
// a and u [batch, 4 hidden] are the contributions of the input and of the state to (i, f, g, o); c [batch, hidden] is
// the previous cell. One floating dtype; bf16 is computed in f32. Throws if shapes, dtypes or devices do not fit.
LstmStep lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form = LstmOutput::hidden);

namespace reference {
Tensor gru_step(const Tensor& a, const Tensor& u, const Tensor& h);
LstmStep lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form = LstmOutput::hidden);
}  // namespace reference

}  // namespace isonorm
