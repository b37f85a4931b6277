#include "autograd/checkpoint.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/random.h"

namespace isonorm {

std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                               const std::vector<Tensor>& inputs) {
  if (!grad_enabled()) return f(inputs);
  const Generator before = default_generator();
  std::vector<Tensor> outputs;
  {
    const NoGrad no_grad;
    for (const Tensor& y : f(inputs)) {
      check(is_floating(y.dtype()), "checkpoint: an output is ", y.dtype(), ", expected f32, f64 or bf16");
      outputs.push_back(detach(y));
    }
  }
  check(!outputs.empty(), "checkpoint: the function has no outputs");
  // f may use leaves that are not inputs: the anchor makes sure that the backward reaches this node.
  std::vector<Tensor> sources = inputs;
  sources.push_back(require_grad(empty({})));
  std::vector<Saved> saved;
  for (const Tensor& x : inputs) saved.push_back(save(x));
  autograd::Node* const node = track("checkpoint", outputs, sources);
  node->reaches_unseen = true;
  node->backward = differentiable([f, before, saved = std::move(saved), count = outputs.size()](Flow& g) {
    std::vector<Tensor> again;
    for (size_t i = 0; i < saved.size(); ++i) again.push_back(g.attached(static_cast<int>(i), saved[i]));
    const Recording recording;
    const std::vector<Tensor> results = [&] {
      const DrawsFrom draws(before);
      return f(again);
    }();
    check(results.size() == count, "checkpoint: the function gave ", count, " outputs, and ", results.size(),
          " when it was run again");
    for (size_t i = 0; i < count; ++i) {
      const int output = static_cast<int>(i);
      if (!g.has_out(output)) continue;
      check(results[i].shape() == g.out(output).shape() && results[i].dtype() == g.out(output).dtype(),
            "checkpoint: output ", i, " is ", results[i].dtype(), ' ', results[i].shape(),
            " when the function is run again, it was ", g.out(output).dtype(), ' ', g.out(output).shape());
      g.follow(results[i], g.take(output));
    }
  });
  return outputs;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return checkpoint([f](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; },
                    std::vector<Tensor>{x})[0];
}

}  // namespace isonorm
