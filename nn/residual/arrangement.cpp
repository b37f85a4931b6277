#include "nn/residual/arrangement.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "nn/init.h"

namespace isonorm::nn {

void check_place(const char* name, const BlockPlace& p) {
  check(p.index >= 0 && p.index < p.depth, name, ": block ", p.index, " of ", p.depth,
        ", expected one of 0 to depth - 1");
  check(p.stack == Stack::alone || p.other_depth > 0, name, ": the other of the two stacks has ", p.other_depth,
        " blocks, expected at least 1");
}

void initialise_scaled(const BlockWeights& w, double gain, double cross) {
  const NoGrad no_grad;
  const auto draw = [](const Tensor& to, double g) { copy_into(to, init::xavier_normal(to.shape(), g)); };
  const auto attention = [&](const AttentionWeights& a, double g) {
    draw(a.query, 1), draw(a.key, 1), draw(a.value, g), draw(a.output, g);
  };
  attention(w.attention, gain);
  if (w.cross) attention(*w.cross, cross);
  for (const Tensor& m : w.mlp) draw(m, gain);
}

}  // namespace isonorm::nn
