#include "training/steps/ranks.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "core/kernels/matmul.h"
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/system/blas.h"
#include "core/view.h"
#include "distributed/parallel/collectives.h"
#include "nn/print.h"
#include "training/steps/loss_checks.h"

namespace isonorm::training {

using distributed::Group;

Rows rows_of(int rank, int ranks, int64_t begin, int64_t count) {
  const int64_t first = count * rank / ranks, end = count * (rank + 1) / ranks;
  return {begin + first, end - first};
}

int64_t size_of_part(int64_t examples, int64_t parts) {
  check(parts >= 1 && examples % parts == 0, "step: ", examples, " examples in ", parts, " parts of equal size");
  return examples / parts;
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

BatchNormsOverRanks::BatchNormsOverRanks(nn::Module& model, Group& group) {
  for (const auto& [_, m] : model.named_modules())
    if (auto* norm = dynamic_cast<nn::BatchNorm*>(m); norm && norm->training()) norms_.push_back(norm);
  for (nn::BatchNorm* norm : norms_)
    norm->sum_over_ranks = [&group](const Tensor& own) {
      return parallel::shared_by_ranks(parallel::sum_of_parts(own, group), group);
    };
}

BatchNormsOverRanks::~BatchNormsOverRanks() {
  for (nn::BatchNorm* norm : norms_) norm->sum_over_ranks = nullptr;
}

std::vector<int> owners_of(const std::vector<Tensor>& parameters, int ranks) {
  std::vector<int64_t> elements(static_cast<size_t>(ranks));
  std::vector<int> owners;
  for (const Tensor& p : parameters) {
    const auto least = std::ranges::min_element(elements);
    *least += p.numel();
    owners.push_back(static_cast<int>(least - elements.begin()));
  }
  return owners;
}

void keep_own_gradients(const Group& group, const std::vector<Tensor>& parameters) {
  const std::vector<int> owners = owners_of(parameters, group.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    if (owners[i] != group.rank()) set_grad(parameters[i], {});
}

void share_weights(Group& group, const std::vector<Tensor>& parameters) {
  const NoGrad no_grad;
  const std::vector<int> owners = owners_of(parameters, group.size());
  std::map<std::pair<int, DType>, std::vector<Tensor>> shares;
  for (size_t i = 0; i < parameters.size(); ++i)
    shares[{owners[i], parameters[i].dtype()}].push_back(detach(parameters[i]));
  for (const auto& [owner, share] : shares) group.broadcast(share, owner.first);
}

TensorMap state_of_ranks(Group& group, const TensorMap& own) {
  TensorMap all;
  std::string names;
  for (const auto& [name, x] : own) {
    names += text(name, ' ', static_cast<int>(x.dtype()), ' ', x.rank());
    for (int64_t n : x.shape()) names += text(' ', n);
    names += '\n';
  }
  for (int root = 0; root < group.size(); ++root) {
    const Tensor length = from_vector(std::vector{std::ssize(names)}, {1});
    group.broadcast(length, root);
    std::vector<int64_t> letters(names.begin(), names.end());
    letters.resize(static_cast<size_t>(length.data<int64_t>()[0]));
    const Tensor word = from_vector(letters, {std::ssize(letters)});
    group.broadcast(word, root);
    const std::vector<int64_t> said = word.to_vector<int64_t>();
    std::istringstream lines(std::string(said.begin(), said.end()));
    const auto number = [&lines] {
      std::string digits;
      int64_t n = 0;
      lines >> digits;
      read_number(digits, n);
      return n;
    };
    for (std::string name; lines >> name;) {
      const auto dtype = static_cast<DType>(number());
      Dims shape;
      for (int64_t rank = number(); rank > 0; --rank) shape.push_back(number());
      const Tensor* here = root == group.rank() ? own.find(name) : nullptr;
      const Tensor x = here ? detached::contiguous(*here) : empty(shape, {dtype});
      group.broadcast(x, root);
      if (!all.find(name)) all.add(name, x);
    }
  }
  return all;
}

TensorMap own_state(const Group& group, const std::vector<Tensor>& parameters, const TensorMap& all) {
  const std::vector<int> owners = owners_of(parameters, group.size());
  TensorMap own;
  for (const auto& [name, x] : all) {
    size_t number = name.npos;  // stays npos for the state of a parameter group
    read_number(std::string_view(name).substr(0, name.find('.')), number);
    if (number >= owners.size() || owners[number] == group.rank()) own.add(name, x);
  }
  return own;
}

void modes_of(const nn::Module& module, std::vector<int64_t>& into) {
  into.push_back(module.training());
  for (const auto& child : module.children()) modes_of(*child, into);
}

TensorMap by_path(const nn::Module& model, const optim::Optimizer& optimizer, const TensorMap& state) {
  std::map<const void*, std::string> paths;
  for (const nn::NamedParameter& p : model.named_parameters()) paths[&p.tensor.impl()] = p.name;
  const std::vector<Tensor> parameters = optimizer.parameters();
  TensorMap named;
  for (const auto& [name, x] : state) {
    const size_t dot = name.find('.');
    size_t i = parameters.size();  // stays so for a group's state, "group.0.lr"
    read_number(std::string_view(name).substr(0, dot), i);
    const auto path = i < parameters.size() ? paths.find(&parameters[i].impl()) : paths.end();
    named.add(path == paths.end() ? name : text(path->second, "'s ", name.substr(dot + 1)), x);
  }
  return named;
}

void check_batch(Group& group, const nn::Module& model, const Examples& batch, double lr,
                 const nn::NamedParameter* watched) {
  const Generator& g = default_generator();
  std::vector<int64_t> random = {static_cast<int64_t>(g.seed), static_cast<int64_t>(g.offset)}, modes;
  modes_of(model, modes);
  for (const Tensor& p : model.parameters()) modes.push_back(requires_grad(p));
  TensorMap all;
  all.add("the inputs", batch.inputs);
  all.add("the targets", batch.targets);
  for (size_t i = 0; i < batch.more.size(); ++i) all.add(text("more[", i, "] of the batch"), batch.more[i]);
  all.add("the learning rate", from_vector(std::vector<double>{lr}, {1}));
  all.add("the random state", from_vector(random, {2}));
  all.add("what trains", from_vector(modes, {std::ssize(modes)}));
  if (watched) all.add(watched->name, watched->tensor);
  group.check_same(all, "batch, rate, random state, mode or weight", "; give all ranks the same batch, rate and seed");
}

void check_step(Group& group, int64_t step, const TrainedTogether& t, const Examples& batch, double lr) {
  const std::vector<nn::NamedParameter> parameters = t.model.named_parameters();
  const nn::NamedParameter* watched =
      step > 1 ? &parameters[static_cast<size_t>(step % std::ssize(parameters))] : nullptr;
  const parallel::Parts* const parts = t.options.parts;
  const parallel::Parts* const own = parts && &parts->group() == &group ? parts : nullptr;  // ranks differ
  if (watched && own && own->is_part(watched->tensor)) watched = nullptr;
  check_batch(group, t.model, batch, lr, watched);
  if (step <= 1) {
    for (const Tensor& p : t.optimizer.parameters())
      check(t.options.apply ||
                std::ranges::any_of(parameters,
                                    [&](const nn::NamedParameter& q) { return &q.tensor.impl() == &p.impl(); }),
            "step: a parameter of ", t.optimizer.name(), " of shape ", p.shape(),
            " is none of the model's, whose gradients the ranks sum");
    group.check_same(text(name_of(isa()), ' ', kernels::openblas_multiplies() ? blas_info().core : ""),
                     "instruction set (ISONORM_ISA sets the lowest of all) or BLAS");
    group.check_same(text(nn::to_string(t.model), t.optimizer.name()), "model or optimizer");
    TensorMap tensors;
    for (const nn::NamedParameter& p : t.model.named_state())
      if (!own || !own->is_part(p.name)) tensors.add(p.name, p.tensor);
    group.check_same(tensors, "weight or buffer");
    if (t.options.zero == 0 && !own)
      group.check_same(by_path(t.model, t.optimizer, t.optimizer.live_state()), "state of the optimizer");
  }
  if (step % kBetweenLosses == 0)
    check_same_loss(group, t, batch,
                    std::max<int64_t>(1, size_of_part(batch.count(), t.options.accumulate) / group.size()));
}

}  // namespace isonorm::training
