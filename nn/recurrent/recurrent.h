// Recurrent layers: GRU (Cho et al., 1406.1078) and LSTM (Hochreiter & Schmidhuber, 1997), plain as in PyTorch, or with
// norms of the gates' inputs (Ba et al., 1607.06450; Zhang & Sennrich, 1910.07467). Several layers, both directions,
// masks for padded steps.
//
//   nn::Gru gru({.inputs = 8, .hidden = 32, .norm = NormKind::rms});
//   nn::RecurrentResult r = gru(x);                       // x [batch, time, 8] -> r.output [batch, time, 32]
//   for (auto& part : r.state) part = detach(part);       // truncated backpropagation through time:
//   r = gru(next, {.state = r.state});                    // continues from this state
#pragma once

#include <functional>

#include "nn/recurrent/cells.h"

namespace isonorm::nn {

struct RecurrentInput {
  // [layers * directions, batch, hidden] for each part of the cell's state (GRU h; LSTM h, c); empty: zeros.
  std::vector<Tensor> state = {};
  // [batch, time]: 1 for a real step, 0 for padding, which leaves the state unchanged. u8, such as arange(time) <
  // lengths.unsqueeze(1), or the dtype of x. Undefined: all steps are real. Values of x at padded steps are not read.
  Tensor mask = {};
};

struct RecurrentResult {
  Tensor output;  // [batch, time, directions * hidden], of the last layer; at a padded step: the unchanged state
  std::vector<Tensor> state;  // like RecurrentInput::state, after the last step (backward direction: after the first)
};

// x [batch, time, inputs] in the parameters' dtype, or bf16 if the parameters are f32: states and outputs are then
// bf16, and parameters are rounded when a product reads them. Throws if sizes are not positive, if p or dropout is out
// of range, if there is dropout with one layer (dropout acts between layers), if the sequence is empty, if a mask has
// other numbers than 0 and 1 or hides every step of an example, or if shapes or dtypes do not fit.
class Recurrent : public Module {
 public:
  RecurrentResult operator()(const Tensor& x, const RecurrentInput& input = {});
  const RecurrentOptions options;

 protected:
  using MakeCell = std::function<std::unique_ptr<Cell>(int64_t inputs)>;
  Recurrent(const RecurrentOptions& options, const MakeCell& make);

 private:
  // Runs one direction of a layer. Returns its rows [batch, time, hidden] and updates `state`. mask: u8. padded[t]: the
  // mask hides step t of at least one example.
  Tensor run(Cell& cell, const Tensor& x, const Tensor& mask, const std::vector<bool>& padded, bool backwards,
             std::vector<Tensor>& state) const;

  std::vector<Cell*> cells_;  // layer i in direction k: cells_[i * directions + k]
};

class Gru : public Recurrent {
 public:
  explicit Gru(const RecurrentOptions& options);
  template <std::integral T> Gru(int64_t, T) : Gru(RecurrentOptions{}) {
    static_assert(!std::integral<T>, "isonorm: options have names: nn::Gru({.inputs = 8, .hidden = 32})");
  }
};
class Lstm : public Recurrent {
 public:
  explicit Lstm(const RecurrentOptions& options);
  template <std::integral T> Lstm(int64_t, T) : Lstm(RecurrentOptions{}) {
    static_assert(!std::integral<T>, "isonorm: options have names: nn::Lstm({.inputs = 8, .hidden = 32})");
  }
};

}  // namespace isonorm::nn
