#include "training/steps/ranks.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "core/memory/bytes.h"
#include "nn/print.h"

namespace isonorm::training {

using distributed::Group;

Rows rows_of(const Group& group, int64_t begin, int64_t count) {
  const int64_t first = count * group.rank() / group.size(), end = count * (group.rank() + 1) / group.size();
  return {begin + first, end - first};
}

DrawsOfRank::DrawsOfRank(const Group& group, int64_t rows)
    : before_(default_generator()), ranks_(static_cast<uint64_t>(group.size())), even_(rows % group.size() == 0) {
  const auto rank = static_cast<uint64_t>(group.rank());
  Generator& g = default_generator();
  if (even_)
    g.share = rank, g.shares = ranks_;
  else
    g.offset += rank * kApart;
}

DrawsOfRank::~DrawsOfRank() {
  Generator& g = default_generator();
  g = {before_.seed, even_ ? g.offset : before_.offset + ranks_ * kApart};
}

void sum_gradients(Group& group, const std::vector<Tensor>& parameters) {
  if (parameters.empty()) return;
  std::vector<int64_t> flags;
  for (const Tensor& p : parameters) flags.push_back(p.grad().defined());
  const Tensor have = from_vector(flags, {std::ssize(flags)});
  group.all_reduce(have);
  constexpr int64_t kBucket = int64_t{25} << 20;
  std::vector<Tensor> bucket;
  int64_t bytes = 0;
  const auto flush = [&] { group.all_reduce(bucket), bucket.clear(), bytes = 0; };
  for (size_t i = parameters.size(); i-- > 0;) {
    if (have.data<int64_t>()[i] == 0) continue;
    const Tensor& p = parameters[i];
    if (!p.grad().defined()) {
      const Tensor none = empty_like(p);
      kernels::fill(none, 0);
      set_grad(p, none);
    }
    const Tensor g = p.grad();
    if (!bucket.empty() && (bytes + byte_size(g) > kBucket || g.dtype() != bucket[0].dtype())) flush();
    bucket.push_back(g), bytes += byte_size(g);
  }
  flush();
}

void check_batch(Group& group, const Examples& batch, double lr, const Tensor& watched) {
  const Generator& g = default_generator();
  const std::vector<int64_t> state = {static_cast<int64_t>(g.seed), static_cast<int64_t>(g.offset)};
  std::vector<Tensor> all = {batch.inputs, batch.targets, from_vector(std::vector<double>{lr}, {1}),
                             from_vector(state, {2})};
  if (watched.defined()) all.push_back(watched);
  group.check_same(all, "batch (inputs, targets, rate, random state) or weight");
}

void check_step(Group& group, int64_t step, nn::Module& model, const optim::Optimizer& optimizer, const Objective& loss,
                const Examples& batch, double lr) {
  const std::vector<Tensor> parameters = model.parameters();
  if (step > 1) return check_batch(group, batch, lr, parameters[static_cast<size_t>(step % std::ssize(parameters))]);
  for (const Tensor& p : optimizer.parameters())
    check(std::ranges::any_of(parameters, [&](const Tensor& q) { return &q.impl() == &p.impl(); }),
          "step: a parameter of ", optimizer.name(), " of shape ", p.shape(),
          " is none of the model's, whose gradients the ranks sum");
  check_batch(group, batch, lr);
  group.check_same(text(nn::to_string(model), optimizer.name()), "model or optimizer");
  std::vector<Tensor> tensors;
  for (const TensorMap& map : {model.state_dict(), optimizer.state_dict()})
    for (const auto& [_, x] : map) tensors.push_back(x);
  group.check_same(tensors, "weight or optimizer's state");
  if (step > 0) return;
  const NoGrad no_grad;
  const DrawsFrom here(default_generator());
  const Tensor first = loss(model, {narrow(batch.inputs, 0, 0, 1), narrow(batch.targets, 0, 0, 1)});
  group.check_same({&first, 1}, "loss of the batch's first row");
}

}  // namespace isonorm::training
