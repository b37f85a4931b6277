#include "distributed/parallel/tensor_parallel.h"

#include <set>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "core/view.h"
#include "distributed/parallel/collectives.h"

namespace isonorm::parallel {

using distributed::Group;

nn::TransformerOptions part_of(nn::TransformerOptions o, const Group& group) {
  o = o.complete();
  const int64_t n = group.size();
  check(o.heads % n == 0 && o.kv_heads % n == 0 && o.mlp_width % n == 0, "tensor parallel: ", o.heads, " heads, ",
        o.kv_heads, " of keys and values and ", o.mlp_width, " hidden entries on ", n,
        " ranks, expected numbers that they share evenly");
  check(n == 1 || (!o.connection.inner_norms && o.positions != nn::Positions::alibi && o.branch.layer_scale == 0),
        "tensor parallel: inner norms, ALiBi and layer scale would need the parts of several ranks");
  o.heads /= n, o.kv_heads /= n, o.mlp_width /= n;
  return o;
}

TensorParallel::TensorParallel(nn::Module& part, const nn::TransformerOptions& whole, Group& group,
                               TensorParallelOptions options)
    : Parts(part, group, false) {
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
    check(!dynamic_cast<nn::CrossAttention*>(m), "tensor parallel: '", path,
          "' is cross-attention, which is not supported");
    auto* stack = dynamic_cast<nn::TransformerStack*>(m);
    if (stack && options.rows) stack->share_rows(own, whole_rows);
    if (auto* block = dynamic_cast<nn::TransformerBlock*>(m)) share_block(*block, path, options.rows, enter, leave);
  }
}

// If every rank has a parameter, its gradient on one rank is only a part of the whole in three cases: the parameter
// acts on the rank's share of the rows, is read together with a cut weight, or acts on the rank's heads. Hooks sum it
// over the ranks.
void TensorParallel::share_block(nn::TransformerBlock& block, const std::string& path, bool rows, const Rows& enter,
                                 const Rows& leave) {
  std::set<const void*> read;  // parameters of the last two cases
  for (const auto& [name, m] : block.named_modules()) {
    if (auto* connection = dynamic_cast<nn::Connection*>(m)) connection->gather_by(enter);
    if (auto* branch = dynamic_cast<nn::BranchOutput*>(m)) {
      check(!rows || (branch->options().dropout == 0 && branch->options().stochastic_depth == 0),
            "tensor parallel: dropout is not supported if ranks share the rows");
      branch->sum_by(leave);
    }
    if (dynamic_cast<nn::MultiheadAttention*>(m))
      for (const auto& child : m->children())
        if (dynamic_cast<nn::Norm*>(child.get()))
          for (const Tensor& p : child->parameters()) read.insert(&p.impl());
  }
  for (const nn::NamedParameter& p : block.named_parameters())
    if (is_part(text(path, '.', p.name)))
      for (const auto& by : p.parametrisations)
        for (const Tensor& other : by->reads()) read.insert(&other.impl());
  for (const nn::NamedParameter& p : block.named_parameters())
    if (!is_part(text(path, '.', p.name)) && (rows || read.contains(&p.tensor.impl())))
      on_grad(p.tensor, [&group = group_](const Tensor& g) { return all_reduced(g, group); });
}

void TensorParallel::cut_layers(nn::TransformerOptions o) {
  o = o.complete();
  const int64_t inner = o.heads * o.head_width, shared = o.kv_heads * o.head_width;
  const TensorMap state = model_.state_dict();
  const auto cut = [&](const std::string& name, int dim, std::vector<int64_t> sections) {
    const Tensor* x = state.find(name);
    if (!x) return;
    const Cut cut{dim, std::move(sections)};
    check(x->size(dim) == part_size(cut), "tensor parallel: '", name, "' has shape ", x->shape(), ", expected ",
          part_size(cut), " along dimension ", dim, ", this rank's part");
    add(name, *x, cut);
    if (group_.size() > 1) model_.find_parameter(name)->hold_part([](const Tensor& own) { return own; });
  };
  for (const auto& [path, m] : model_.named_modules()) {
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

}  // namespace isonorm::parallel
