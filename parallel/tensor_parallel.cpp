#include "parallel/tensor_parallel.h"

#include <cmath>
#include <numeric>
#include <set>

#include "autograd/engine.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/create.h"
#include "core/view.h"
#include "parallel/collectives.h"

namespace isonorm::parallel {

using distributed::Group;

nn::TransformerOptions part_of(nn::TransformerOptions o, const Group& group) {
  o = o.complete();
  const int64_t n = group.size();
  check(o.heads % n == 0 && o.kv_heads % n == 0 && o.mlp_width % n == 0, "tensor parallel: ", o.heads, " heads, ",
        o.kv_heads, " of keys and values and ", o.mlp_width, " hidden entries on ", n,
        " ranks, expected numbers that they share evenly");
  check(n == 1 || (!o.connection.inner_norms && o.positions != nn::Positions::alibi && o.branch.layer_scale == 0),
        "tensor parallel: inner norms, ALiBi and layer scale see what several ranks have");
  o.heads /= n, o.kv_heads /= n, o.mlp_width /= n;
  return o;
}

TensorParallel::TensorParallel(nn::Module& part, const nn::TransformerOptions& whole, Group& group,
                               TensorParallelOptions options)
    : part_(part), group_(group) {
  cut_layers(whole);
  if (group.size() == 1) return;
  const auto own = [&group](const Tensor& x) { return own_part(x, 1, group); };
  const auto whole_rows = [&group](const Tensor& x) { return whole_of_parts(x, 1, group); };
  const auto enter = [&group, rows = options.rows](const Tensor& x) {
    return rows ? gathered_parts(x, 1, group) : shared_by_ranks(x, group);
  };
  const auto leave = [&group, rows = options.rows](const Tensor& x) {
    return rows ? sum_of_own_part(x, 1, group) : sum_of_parts(x, group);
  };
  for (const auto& [path, m] : part.named_modules()) {
    check(!dynamic_cast<nn::CrossAttention*>(m), "tensor parallel: '", path, "' attends to the rows of another stack");
    auto* stack = dynamic_cast<nn::TransformerStack*>(m);
    if (stack && options.rows) stack->share_rows(own, whole_rows);
    if (auto* block = dynamic_cast<nn::TransformerBlock*>(m)) share_block(*block, path, options.rows, enter, leave);
  }
}

// Of what every rank of a block has, the gradient is a part where it acts on the rank's rows, is read together with its weights, or on its
// heads: there it is summed.
void TensorParallel::share_block(nn::TransformerBlock& block, const std::string& path, bool rows, const Rows& enter,
                                 const Rows& leave) {
  std::set<const void*> read;  // by the maps of weights that the ranks share
  for (const auto& [name, m] : block.named_modules()) {
    if (auto* connection = dynamic_cast<nn::Connection*>(m)) connection->hand_by(enter);
    if (auto* branch = dynamic_cast<nn::BranchOutput*>(m)) {
      check(!rows || (branch->options().dropout == 0 && branch->options().stochastic_depth == 0),
            "tensor parallel: dropout in a block whose rows the ranks share");
      branch->sum_by(leave);
    }
    if (dynamic_cast<nn::MultiheadAttention*>(m))
      for (const auto& child : m->children())
        if (dynamic_cast<nn::Norm*>(child.get()))
          for (const Tensor& p : child->parameters()) read.insert(&p.impl());
  }
  for (const nn::NamedParameter& p : block.named_parameters())
    if (p.parametrisation && is_part(text(path, '.', p.name)))
      for (const Tensor& beside : p.parametrisation->reads()) read.insert(&beside.impl());
  for (const nn::NamedParameter& p : block.named_parameters())
    if (!is_part(text(path, '.', p.name)) && (rows || read.contains(&p.tensor.impl())))
      on_grad(p.tensor, [&group = group_](const Tensor& g) { return all_reduced(g, group); });
}

void TensorParallel::cut_layers(nn::TransformerOptions o) {
  o = o.complete();
  const int64_t inner = o.heads * o.head_width, shared = o.kv_heads * o.head_width;
  const TensorMap state = part_.state_dict();
  const auto cut = [&](const std::string& name, int dim, std::vector<int64_t> sections) {
    const Tensor* x = state.find(name);
    if (!x) return;
    int64_t whole = 0;
    for (int64_t n : sections) {
      check(n % group_.size() == 0, "tensor parallel: ", n, " rows or columns of '", name, "' on ", group_.size(),
            " ranks, expected ones that they share evenly");
      whole += n;
    }
    check(x->size(dim) * group_.size() == whole, "tensor parallel: '", name, "' has shape ", x->shape(), ", expected ",
          whole / group_.size(), " along dimension ", dim, ", this rank's part of ", whole);
    cuts_[name] = {dim, std::move(sections)};
  };
  for (const auto& [path, m] : part_.named_modules()) {
    const auto in = [&, &path = path](const char* layer) { return text(path, '.', layer); };
    if (dynamic_cast<nn::MultiheadAttention*>(m)) {
      for (const char* x : {"qkv.weight", "qkv.bias"}) cut(in(x), 0, {inner, shared, shared});
      cut(in("proj.weight"), 1, {inner});
    }
    if (dynamic_cast<nn::FeedForward*>(m)) {
      for (const char* x : {"fc1.weight", "fc1.bias", "gate.weight", "gate.bias"}) cut(in(x), 0, {o.mlp_width});
      cut(in("fc2.weight"), 1, {o.mlp_width});
    }
  }
}

namespace {

// Calls f(place in the whole, place in rank r's part, numbers) for each section.
template <class F> void each_section(const std::vector<int64_t>& sections, int ranks, int r, F&& f) {
  int64_t whole = 0, part = 0;
  for (int64_t n : sections) {
    f(whole + n / ranks * r, part, n / ranks);
    whole += n, part += n / ranks;
  }
}

}  // namespace

void TensorParallel::load(const TensorMap& whole) {
  TensorMap own;
  for (const auto& [name, x] : whole) {
    const auto cut = cuts_.find(name);
    if (cut == cuts_.end()) {
      own.add(name, x);
      continue;
    }
    const auto& [dim, sections] = cut->second;
    const int64_t n = std::reduce(sections.begin(), sections.end());
    check(dim < x.rank() && x.size(dim) == n, "tensor parallel: '", name, "' has shape ", x.shape(), ", expected ", n,
          " along dimension ", dim);
    Dims shape = x.shape();
    shape[dim] = n / group_.size();
    const Tensor part = empty(shape, x.options());
    each_section(sections, group_.size(), group_.rank(),
                 [&, dim = dim, &x = x](int64_t from, int64_t to, int64_t count) {
                   copy_into(detached::narrow(part, dim, to, count), detached::narrow(x, dim, from, count));
                 });
    own.add(name, part);
  }
  part_.load_state_dict(own);
}

TensorMap TensorParallel::whole(const TensorMap& part) {
  TensorMap all;
  for (const auto& [name, x] : part) {
    const auto cut = cuts_.find(name);
    if (cut == cuts_.end()) {
      all.add(name, detached::clone(x));
      continue;
    }
    const auto& [dim, sections] = cut->second;
    const Tensor parts = group_.all_gather(detached::reshape(x, {1, -1}));
    Dims shape = x.shape();
    shape[dim] *= group_.size();
    const Tensor tensor = empty(shape, x.options());
    for (int r = 0; r < group_.size(); ++r) {
      const Tensor of_rank = detached::reshape(detached::narrow(parts, 0, r, 1), x.shape());
      each_section(sections, group_.size(), r, [&, dim = dim](int64_t to, int64_t from, int64_t count) {
        copy_into(detached::narrow(tensor, dim, to, count), detached::narrow(of_rank, dim, from, count));
      });
    }
    all.add(name, tensor);
  }
  return all;
}

TensorParallel::Clip TensorParallel::clip() {
  std::set<const void*> parts;
  for (const nn::NamedParameter& p : part_.named_parameters())
    if (is_part(p.name)) parts.insert(&p.tensor.impl());
  return [parts, &group = group_](const std::vector<Tensor>& parameters, double max_norm) {
    std::vector<Tensor> own, common;
    for (const Tensor& p : parameters) (parts.contains(&p.impl()) ? own : common).push_back(p);
    const double norm = optim::grad_norm(own), rest = optim::grad_norm(common);
    const Tensor square = full({}, norm * norm, {DType::f64});
    group.all_reduce(square);
    const double all = std::sqrt(square.item() + rest * rest);
    const TensorOptions where{DType::f64, parameters.front().device()};
    return optim::ClipNumbers{full({}, all, where), full({}, optim::clip_factor(all, max_norm), where)};
  };
}

}  // namespace isonorm::parallel
