// What the name of a recorded tensor says of it, and the order in which a step of training computes recorded tensors.
//
//   h.3.mlp.c_fc.weight                            a parameter: its value when the step begins
//   h.3.ln_1.input, h.3.ln_1.output                what a layer read and gave
//   h.3.mlp.c_fc.weight.grad, grad.h.3.mlp...      a gradient; also h.3.ln_1.output.grad, h.3.ln_1.grad_input
//   h.3.mlp.c_fc.weight.exp_avg                    a state of the optimizer
//   h.3.mlp.c_fc.weight.after, after.h.3.mlp...    the value when the step ends
//   step.2.NAME                                    the same of a later step
//   loss, logits, blocks.3.hook_resid_pre          what the forward pass gave, in the names of TransformerLens too
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
  std::string of;  // the name without the words that say all this: of a parameter, or a layer

  auto operator<=>(const Recorded&) const = default;
};

Recorded recorded(const std::string& name);

// "h.2.x" before "h.10.x": runs of digits count as numbers.
bool naturally_before(std::string_view a, std::string_view b);

struct ExecutionOrder {
  std::vector<std::string> names;
  std::string source;  // "of --order", "of the layout", "of the file", "of names"
};

// The names of `file`, which has them in the order of its header, in the order of execution: step by step, first what is there
// before, then the forward pass, gradients from the last layer to the first, states, and what is there after. The order of
// the layers is, of these, the first that is there:
//   given    names of layers, or of all tensors: then just that order. A * stands for a number: neighbours that are alike before their
//            first one are repeated together, "h.*.ln_1" and "h.*.attn" for h.0, then for h.1, ...
//   layouts  stream by stream what writes first, then per block norm, readers and writers, then the other readers. A stream from
//            which blocks of another one read (an encoder's) stands before that
//   file     the order of its header, where the safetensors library, which sorts by dtype and name, did not make it
//   names    as naturally_before() has them
// A name that is not in `given` or the layouts stands at the layer with which it shares the most parts, or last where it shares none.
// gradients: all parameters are gradients. Throws where `given` has more than 1024 layers, or none that fits.
ExecutionOrder execution_order(const TensorMap& file, bool gradients, std::span<const std::string> given = {},
                               std::span<const streams::Layout> layouts = {});

}  // namespace isonorm::equivalence
