// The meaning of the name of a recorded tensor, and the order of recorded tensors within a training step.
//
//   h.3.mlp.c_fc.weight                            a parameter: its value when the step begins
//   h.3.ln_1.input, h.3.ln_1.output                the input and output of a layer
//   h.3.mlp.c_fc.weight.grad, grad.h.3.mlp...      a gradient; also h.3.ln_1.output.grad, h.3.ln_1.grad_input
//   h.3.mlp.c_fc.weight.exp_avg                    a state of the optimizer
//   h.3.mlp.c_fc.weight.after, after.h.3.mlp...    the value when the step ends
//   step.2.NAME                                    the same for a later step
//   loss, logits, blocks.3.hook_resid_pre          results of the forward pass, also by TransformerLens's names
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor_map.h"
#include "streams/layout.h"

namespace isonorm::equivalence {

enum class Stage { before, forward, gradient, state, after };  // in the order of a step
enum class Side { input, parameter, output };                  // of a layer

struct Recorded {
  int64_t step = 0;
  Stage stage = Stage::before;
  Side side = Side::parameter;
  std::string of;  // the name of the parameter or layer, without the other words

  auto operator<=>(const Recorded&) const = default;
};

Recorded recorded(const std::string& name);

// "h.2.x" before "h.10.x": runs of digits count as numbers.
bool naturally_before(std::string_view a, std::string_view b);

struct ExecutionOrder {
  std::vector<std::string> names;
  std::string source;  // "that was given", "of the layout", "of the file", "of names"
};

// The names of `file`, which has them in the order of its header, in the order of execution: step by step, first the
// values before the step, then the forward pass, gradients from the last layer to the first, optimizer states, and the
// values after the step. The order of the layers is the first of these that is available:
//   given    names of layers, or of every tensor: then exactly that order. A * is a number: neighbours that are
//            alike before their first * are repeated together, "h.*.ln_1" and "h.*.attn" for h.0, then for h.1, ...
//   layouts  stream by stream: the writers at its beginning, then per block norm, readers and writers, then the other
//            readers. If blocks of another stream read from a stream (an encoder's), it comes before that stream
//   file     the order of its header, unless the safetensors library wrote it, which sorts by dtype and name
//   names    in the order of naturally_before()
// A name that is not in `given` or the layouts is put to the layer with which it shares the most parts, or to the end
// if it shares none. gradients: all parameters are gradients. Throws if `given` has more than 1024 layers, or no layer
// that fits.
ExecutionOrder execution_order(const TensorMap& file, bool gradients, std::span<const std::string> given = {},
                               std::span<const streams::Layout> layouts = {});

}  // namespace isonorm::equivalence
