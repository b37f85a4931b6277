#include "autograd/fused/recurrent.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/kernels/recurrent.h"
#include "core/view.h"

namespace isonorm {
namespace {

// parts: number of gates in a and u.
void check_step(const char* op, const Tensor& a, const Tensor& u, const Tensor& state, int64_t parts) {
  check_same_device(op, a, u, state);
  check(is_floating(state.dtype()), op, ": dtype is ", state.dtype(), ", expected f32, f64 or bf16");
  check(state.rank() == 2, op, ": the state has shape ", state.shape(), ", expected [batch, hidden]");
  const Dims gates{state.size(0), checked_mul(parts, state.size(1), op)};
  for (const Tensor* t : {&a, &u}) {
    const char* name = t == &a ? "a" : "u";
    check(t->dtype() == state.dtype(), op, ": ", name, " is ", t->dtype(), ", the state ", state.dtype());
    check(t->shape() == gates, op, ": ", name, " has shape ", t->shape(), ", the state ", state.shape(), " needs ",
          gates);
  }
}

// x with the entries of a row adjacent: x itself if they are, else a copy.
Tensor rows(const Tensor& x) { return x.strides()[1] == 1 ? x : detached::contiguous(x); }

// The inverses of sigmoid and tanh, for the composition: the forward keeps the gates, not their arguments. They are
// infinite at the ends, where the slopes are 0.
Tensor inverse_sigmoid(const Tensor& y) { return log(y) - log1p(-y); }
Tensor inverse_tanh(const Tensor& y) { return (log1p(y) - log1p(-y)) * 0.5; }

// The first four parts that a step keeps.
std::vector<Tensor> parts_of(const Tensor& kept, int64_t hidden) {
  return split(narrow(kept, 1, 0, 4 * hidden), {hidden, hidden, hidden, hidden}, 1);
}

// A buffer [batch, parts hidden] for the gates that the backward needs, not rounded; undefined if there is no backward.
Tensor room_for_backward(const Tensor& a, const Tensor& u, const Tensor& state, int64_t parts) {
  if (!takes_gradient(a) && !takes_gradient(u) && !takes_gradient(state)) return {};
  return empty({state.size(0), parts * state.size(1)}, {acc_dtype(state.dtype()), state.device()});
}

}  // namespace

Tensor reference::gru_step(const Tensor& a, const Tensor& u, const Tensor& h) {
  const int64_t hidden = h.size(-1);
  const std::vector<Tensor> input = split(a, {2 * hidden, hidden}, -1), state = split(u, {2 * hidden, hidden}, -1);
  const std::vector<Tensor> gates = split(sigmoid(input[0] + state[0]), {hidden, hidden}, -1);
  const Tensor n = tanh(input[1] + gates[0] * state[1]);
  return n + gates[1] * (h - n);
}

Tensor gru_step(const Tensor& a, const Tensor& u, const Tensor& h) {
  check_step("gru_step", a, u, h, 3);
  if (use_reference()) return reference::gru_step(a, u, h);
  const Tensor before = detached::contiguous(h), kept = room_for_backward(a, u, h, 4);
  Tensor y = empty(h.shape(), h.options());
  kernels::gru_step.on(h.device(), {y, kept}, {rows(a), rows(u), before});
  if (auto* n = track("gru_step", {&y}, {&a, &u, &h}))
    n->backward = differentiable([kept, h = save(before)](Flow& g) {
      if (g.needs_composition()) {
        // Any a and u that give these gates will do: u is zeros and its own last third.
        const std::vector<Tensor> gates = parts_of(kept, h.data().size(1));  // r, z, n and the last third of u
        const Tensor zero = zeros_like(gates[0]);
        const Tensor a = cat(
            {inverse_sigmoid(gates[0]), inverse_sigmoid(gates[1]), inverse_tanh(gates[2]) - gates[0] * gates[3]}, 1);
        return g.follow(
            {reference::gru_step(g.attached(0, a), g.attached(1, cat({zero, zero, gates[3]}, 1)), g.attached(2, h))});
      }
      const Tensor dy = detached::contiguous(g.out()), before = h;
      const Dims gates{before.size(0), 3 * before.size(1)};
      const kernels::GruGradients d{empty(gates, dy.options()), empty(gates, dy.options()), empty_like(dy)};
      kernels::gru_step_backward.on(dy.device(), d, dy, kept, before);
      g.give(0, d.da);
      g.give(1, d.du);
      g.give(2, d.dh);
    });
  return y;
}

LstmStep reference::lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form) {
  const int64_t n = c.size(-1);
  const std::vector<Tensor> gates = split(a + u, {n, n, n, n}, -1);
  const Tensor cell = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]), o = sigmoid(gates[3]);
  return {form == LstmOutput::gate ? o : o * tanh(cell), cell};
}

LstmStep lstm_step(const Tensor& a, const Tensor& u, const Tensor& c, LstmOutput form) {
  check_step("lstm_step", a, u, c, 4);
  if (use_reference()) return reference::lstm_step(a, u, c, form);
  const bool gate = form == LstmOutput::gate;
  const Tensor before = detached::contiguous(c), kept = room_for_backward(a, u, c, gate ? 4 : 5);
  LstmStep out{empty(c.shape(), c.options()), empty(c.shape(), c.options())};
  kernels::lstm_step.on(c.device(), {out.output, out.cell, kept}, {rows(a), rows(u), before}, gate);
  if (auto* n = track("lstm_step", {&out.output, &out.cell}, {&a, &u, &c}))
    n->backward = differentiable([kept, c = save(before), gate](Flow& g) {
      if (g.needs_composition()) {
        const std::vector<Tensor> gates = parts_of(kept, c.data().size(1));  // i, f, g, o
        const Tensor a = cat(
            {inverse_sigmoid(gates[0]), inverse_sigmoid(gates[1]), inverse_tanh(gates[2]), inverse_sigmoid(gates[3])},
            1);
        const LstmStep step = reference::lstm_step(g.attached(0, a), g.attached(1, zeros_like(a)), g.attached(2, c),
                                                   gate ? LstmOutput::gate : LstmOutput::hidden);
        return g.follow({step.output, step.cell});
      }
      const Tensor before = c;
      const kernels::LstmGradients d{empty({before.size(0), 4 * before.size(1)}, before.options()), empty_like(before)};
      kernels::lstm_step_backward.on(
          before.device(), d, {detached::contiguous(g.out(0)), detached::contiguous(g.out(1)), kept, before}, gate);
      g.give(0, d.dgates);
      g.give(1, d.dgates);
      g.give(2, d.dc);
    });
  return out;
}

}  // namespace isonorm
