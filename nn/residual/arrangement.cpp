#include "nn/residual/arrangement.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "nn/init.h"

namespace isonorm::nn {

void check_place(const char* name, int64_t index, int64_t depth) {
  check(index >= 0 && index < depth, name, ": block ", index, " of ", depth, ", expected one of 0 to depth - 1");
}

void initialise_scaled(const BlockWeights& w, double gain) {
  const NoGrad no_grad;
  const auto draw = [](const Tensor& to, double g) { copy_into(to, init::xavier_normal(to.shape(), g)); };
  draw(w.query, 1), draw(w.key, 1), draw(w.value, gain), draw(w.output, gain);
  for (const Tensor& m : w.mlp) draw(m, gain);
}

}  // namespace isonorm::nn
