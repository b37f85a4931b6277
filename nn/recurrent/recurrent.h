// Recurrent layers: GRU (Cho et al., 1406.1078) and LSTM (Hochreiter & Schmidhuber, 1997), plain as PyTorch has them or
// with a norm of what goes into the gates (Ba et al., 1607.06450; Zhang & Sennrich, 1910.07467). Stacked, in both
// directions, with masks of padded steps.
//
//   nn::Gru gru({.inputs = 8, .hidden = 32, .norm = nn::RecurrentNorm::rms});
//   nn::RecurrentResult r = gru(x);                       // x [batch, time, 8] -> r.output [batch, time, 32]
//   for (auto& part : r.state) part = detach(part);       // truncated backpropagation through time:
//   r = gru(next, {.state = r.state});                    // goes on where it was
#pragma once

#include <functional>

#include "nn/recurrent/cells.h"

namespace isonorm::nn {

struct RecurrentInput {
  // [layers * directions, batch, hidden] for each part of the cell's state (GRU h; LSTM h, c); empty: zeros.
  std::vector<Tensor> state = {};
  // [batch, time], 1 for a step that counts and 0 for padding, which leaves the state as it was. u8, such as
  // arange(time) < lengths.unsqueeze(1), or the rows' dtype; undefined: all count. Hidden steps are not read.
  Tensor mask = {};
};

struct RecurrentResult {
  Tensor output;  // [batch, time, directions * hidden]: of the last layer; of a padded step the state that stayed
  std::vector<Tensor> state;  // as RecurrentInput::state, behind the last step (of the backward direction: the first)
};

// x [batch, time, inputs] of the parameters' dtype, or of bf16 where they are f32: then states and outputs are of bf16,
// and parameters are rounded where a product reads them. Throws on sizes that are not positive, p or dropout out of
// range, dropout of one layer (it acts between two), an empty sequence, a mask with other numbers or that hides every step of an example, and on shapes and dtypes that do not fit.
class Recurrent : public Module {
 public:
  RecurrentResult operator()(const Tensor& x, const RecurrentInput& input = {});
  const RecurrentOptions options;

 protected:
  using MakeCell = std::function<std::unique_ptr<Cell>(int64_t inputs)>;
  Recurrent(const RecurrentOptions& options, const MakeCell& make);

 private:
  // One direction of a layer: its rows [batch, time, hidden], and the state behind them. padded: by step, whether the
  // mask, u8, hides it for some example.
  Tensor run(Cell& cell, const Tensor& x, const Tensor& mask, const std::vector<bool>& padded, bool backwards,
             std::vector<Tensor>& state) const;

  std::vector<Cell*> cells_;  // of layer i in direction k: i * directions + k
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

// PyTorch's spelling.
using GRU = Gru;
using LSTM = Lstm;

}  // namespace isonorm::nn
