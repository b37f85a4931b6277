#include "nn/recurrent/cells.h"

#include <cmath>

#include "autograd/fused/recurrent.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "nn/init.h"

namespace isonorm::nn {
namespace {

// Draws a weight [gates x hidden, in], and its bias if it has one.
void draw(const Linear& linear, const RecurrentOptions& o) {
  const int64_t in = linear.weight.size(1);
  if (o.initialisation == RecurrentInitialisation::uniform) {
    const double bound = 1 / std::sqrt(static_cast<double>(o.hidden));
    for (const Tensor& p : linear.parameters()) copy_into(detach(p), init::uniform(p.shape(), -bound, bound));
    return;
  }
  for (int64_t row = 0; row < linear.weight.size(0); row += o.hidden)
    copy_into(detached::narrow(detach(linear.weight), 0, row, o.hidden),
              in == o.hidden ? init::orthogonal({in, in}) : init::normal({o.hidden, in}, 0, 0.01));
  if (linear.bias.defined()) fill(detach(linear.bias), 0);
}

// The norm of a vector of gates or of a state: a gain, and for LayerNorm a bias.
Norm norm_of(int64_t width, const RecurrentOptions& o) {
  return {width, {.kind = o.norm, .eps = o.eps, .p = o.p}, {.eps = o.eps, .bias = o.norm == NormKind::layer}};
}

}  // namespace

GruCell::GruCell(int64_t inputs, const RecurrentOptions& o)
    : hidden_(o.hidden),
      input_(add("input", Linear(inputs, 3 * o.hidden))),
      recurrent_(
          add("recurrent", Linear(o.hidden, (o.reset_first ? 2 : 3) * o.hidden, {.bias = o.norm == NormKind::none}))),
      after_reset_(o.reset_first ? &add("recurrent_new", Linear(o.hidden, o.hidden, {.bias = o.norm == NormKind::none}))
                                 : nullptr) {
  draw(input_, o), draw(recurrent_, o);
  if (after_reset_) draw(*after_reset_, o);
  const bool plain = o.norm == NormKind::none;
  const auto norm = [&](const char* name, int64_t width) { return plain ? nullptr : &add(name, norm_of(width, o)); };
  input_gates_ = norm("input_gates_norm", 2 * hidden_), input_new_ = norm("input_new_norm", hidden_);
  recurrent_gates_ = norm("recurrent_gates_norm", 2 * hidden_), recurrent_new_ = norm("recurrent_new_norm", hidden_);
}

Tensor GruCell::prepared(const Tensor& x) {
  const Tensor a = input_(x);
  if (!input_gates_) return a;
  const std::vector<Tensor> parts = split(a, {2 * hidden_, hidden_}, -1);
  return cat({(*input_gates_)(parts[0]), (*input_new_)(parts[1])}, -1);
}

std::vector<Tensor> GruCell::step(const Tensor& a, const std::vector<Tensor>& state) {
  const Tensor &h = state[0], u = recurrent_(h);
  if (after_reset_) {
    const std::vector<Tensor> input = split(a, {2 * hidden_, hidden_}, -1);
    const std::vector<Tensor> gates =
        split(sigmoid(input[0] + (recurrent_gates_ ? (*recurrent_gates_)(u) : u)), {hidden_, hidden_}, -1);
    const Tensor seen = (*after_reset_)(gates[0] * h);
    const Tensor n = tanh(input[1] + (recurrent_new_ ? (*recurrent_new_)(seen) : seen));
    return {n + gates[1] * (h - n)};
  }
  if (!recurrent_gates_) return {gru_step(a, u, h)};
  const std::vector<Tensor> parts = split(u, {2 * hidden_, hidden_}, -1);
  return {gru_step(a, cat({(*recurrent_gates_)(parts[0]), (*recurrent_new_)(parts[1])}, -1), h)};
}

LstmCell::LstmCell(int64_t inputs, const RecurrentOptions& o)
    : hidden_(o.hidden),
      input_(add("input", Linear(inputs, 4 * o.hidden, {.bias = o.norm == NormKind::none}))),
      recurrent_(add("recurrent", Linear(o.hidden, 4 * o.hidden, {.bias = o.norm == NormKind::none}))),
      bias_(add_parameter("bias", o.norm == NormKind::none ? Tensor() : zeros({4 * o.hidden}))) {
  check(!o.reset_first, "lstm: reset_first is GRU's, LSTM has no reset gate");
  draw(input_, o), draw(recurrent_, o);
  const bool plain = o.norm == NormKind::none;
  const auto norm = [&](const char* name, int64_t width) { return plain ? nullptr : &add(name, norm_of(width, o)); };
  input_norm_ = norm("input_norm", 4 * hidden_), recurrent_norm_ = norm("recurrent_norm", 4 * hidden_);
  state_norm_ = norm("state_norm", hidden_);
}

Tensor LstmCell::prepared(const Tensor& x) {
  const Tensor a = input_(x);
  return input_norm_ ? (*input_norm_)(a) + bias_().to(a.dtype()) : a;
}

std::vector<Tensor> LstmCell::step(const Tensor& a, const std::vector<Tensor>& state) {
  const Tensor u = recurrent_(state[0]);
  if (!recurrent_norm_) {
    const LstmStep next = lstm_step(a, u, state[1]);
    return {next.output, next.cell};
  }
  const LstmStep next = lstm_step(a, (*recurrent_norm_)(u), state[1], LstmOutput::gate);
  return {next.output * tanh((*state_norm_)(next.cell)), next.cell};
}

}  // namespace isonorm::nn
