#include "lab/papers/nets/copy_task.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "optim/adam.h"
#include "optim/schedule.h"

namespace isonorm::papers {
namespace {

constexpr int64_t kRows = 16, kTokens = 16, kWidth = 32;

class CopyNet : public nn::Module {
 public:
  explicit CopyNet(const nn::TransformerOptions& o)
      : token_(add("token", nn::Embedding(kCopyVocabulary, o.width))),
        position_(add("position", nn::Embedding(kTokens, o.width))),
        net(add("net", DeepNet(o, kCopyVocabulary))) {}
  Tensor rows(const Tensor& ids) { return token_(ids) + position_.first(ids.size(1)); }
  Tensor forward(const Tensor& ids) override { return net(rows(ids)); }

 private:
  nn::Embedding &token_, &position_;

 public:
  DeepNet& net;
};

}  // namespace

CopyResult train_copy(const CopyTraining& t) {
  manual_seed(t.seed);
  CopyNet model({.width = kWidth, .depth = t.depth, .heads = 2, .causal = true, .connection = t.connection});
  optim::Adam adam(model.parameters(), {.lr = t.lr, .beta1 = 0.9, .beta2 = 0.98});
  const optim::Schedule rates{.peak = t.lr, .warmup = t.warmup, .steps = t.steps, .decay = optim::Decay::constant};
  Generator draw{.seed = t.seed + 1000};
  CopyResult r;
  for (int64_t step = 0; step < t.steps; ++step) {
    if (t.before_step) t.before_step();
    const Tensor all = randint(0, kCopyVocabulary, {kRows, kTokens + 1}, kCpu, draw);
    const Tensor ids = narrow(all, 1, 1, kTokens), before = narrow(all, 1, 0, kTokens);
    for (const Tensor& p : model.parameters()) set_grad(p, {});
    const Tensor loss = cross_entropy(model(ids), reshape(before, {before.numel()}));
    backward(loss);
    r.losses.push_back(loss.item());
    if (step == 0 || step == t.steps - 1) {
      const NoGrad no_grad;
      Inside& seen = step == 0 ? r.begin : r.end;
      const std::vector<Tensor> streams = model.net.streams(model.rows(ids));
      for (int64_t b = 0; b < t.depth; ++b) {
        seen.gradients.push_back(model.net.gradient_norm(b));
        seen.stream.push_back(mean(square(streams[static_cast<size_t>(b + 1)])).item());
      }
    }
    adam.set_lr(rates.lr(step));
    adam.step();
  }
  const size_t tenth = std::max<size_t>(1, r.losses.size() / 10);
  for (size_t i = r.losses.size() - tenth; i < r.losses.size(); ++i) r.last += r.losses[i] / static_cast<double>(tenth);
  return r;
}

}  // namespace isonorm::papers
