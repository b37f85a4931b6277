// What is pointwise in a step of a recurrent layer, in one pass over memory forward and one backward.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// The state [batch, hidden] of a GRU behind a step (Cho et al., 1406.1078, with PyTorch's place of the reset gate):
//   r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n);  n + z (h - n)
// a and u [batch, 3 hidden], what the input and what the state says of (r, z, n); h [batch, hidden], the state before.
// All of one floating dtype; bf16 is computed in f32. Throws where shapes, dtypes or devices do not fit.
Tensor gru_step(const Tensor& a, const Tensor& u, const Tensor& h);

struct LstmStep {
  Tensor output, cell;  // [batch, hidden]
};
// hidden: output is o tanh(cell). gate: it is o alone, for a caller who normalizes the cell in between.
enum class LstmOutput { hidden, gate };

// Output and cell of an LSTM behind a step (Hochreiter & Schmidhuber, 1997, with a forget gate):
//   i, f, o = sigmoid(a + u), g = tanh(a_g + u_g);  cell = f c + i g, output = o tanh(cell)
// a and u [batch, 4 hidden], what the input and what the state says of (i, f, g, o); c [batch, hidden], the cell
// before. All of one floating dtype; bf16 is computed in f32. Throws where shapes, dtypes or devices do not fit.
LstmStep lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form = LstmOutput::hidden);

namespace reference {
Tensor gru_step(const Tensor& a, const Tensor& u, const Tensor& h);
LstmStep lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form = LstmOutput::hidden);
}  // namespace reference

}  // namespace isonorm
