#include "distributed/parallel/parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops/create.h"
#include "core/printed.h"
#include "core/system/float_environment.h"
#include "core/view.h"

namespace isonorm::parallel {
namespace {

int64_t share(int64_t n, int ranks) { return (n + ranks - 1) / ranks; }

// Calls f(position in the whole, position in rank r's part, count) for each section that rank r has a share of.
template <class F> void each_section(const std::vector<int64_t>& sections, int ranks, int r, F&& f) {
  int64_t whole = 0, part = 0;
  for (int64_t n : sections) {
    const int64_t own = share(n, ranks), first = std::min(n, own * r);
    if (const int64_t count = std::min(own, n - first); count > 0) f(whole + first, part, count);
    whole += n, part += own;
  }
}

}  // namespace

int64_t Parts::part_size(const Cut& cut) const {
  return std::transform_reduce(cut.sections.begin(), cut.sections.end(), int64_t{0}, std::plus(),
                               [&](int64_t n) { return share(n, group_.size()); });
}

void Parts::add(const std::string& name, const Tensor& part, Cut cut) {
  by_tensor_[&part.impl()] = &(cuts_[name] = std::move(cut));
}

Tensor Parts::part_of(const Tensor& x, const Cut& cut) const {
  Dims shape = x.shape();
  shape[cut.dim] = part_size(cut);
  const Tensor part = zeros(shape, x.options());
  each_section(cut.sections, group_.size(), group_.rank(), [&](int64_t from, int64_t to, int64_t count) {
    copy_into(detached::narrow(part, cut.dim, to, count), detached::narrow(x, cut.dim, from, count));
  });
  return part;
}

Tensor Parts::whole_of(const Tensor& part, const Cut& cut) {
  const Tensor parts = group_.all_gather(detached::reshape(part, {1, -1}));
  Dims shape = part.shape();
  shape[cut.dim] = std::reduce(cut.sections.begin(), cut.sections.end());
  const Tensor whole = empty(shape, part.options());
  for (int r = 0; r < group_.size(); ++r) {
    const Tensor of_rank = detached::reshape(detached::narrow(parts, 0, r, 1), part.shape());
    each_section(cut.sections, group_.size(), r, [&](int64_t to, int64_t from, int64_t count) {
      copy_into(detached::narrow(whole, cut.dim, to, count), detached::narrow(of_rank, cut.dim, from, count));
    });
  }
  return whole;
}

void Parts::load(const TensorMap& whole) {
  TensorMap own;
  for (const auto& [name, x] : whole) {
    const auto found = cuts_.find(name);
    if (found == cuts_.end()) {
      own.add(name, x);
      continue;
    }
    const Cut& cut = found->second;
    const int64_t n = std::reduce(cut.sections.begin(), cut.sections.end());
    check(cut.dim < x.rank() && x.size(cut.dim) == n, "parts: '", name, "' has shape ", x.shape(), ", expected ", n,
          " along dimension ", cut.dim);
    own.add(name, part_of(x, cut));
  }
  model_.load_state_dict(own);
  loaded_ = true;
}

TensorMap Parts::own() const {
  TensorMap own;
  for (const nn::NamedParameter& p : model_.named_state()) own.add(p.name, p.tensor);
  return own;
}

TensorMap Parts::whole(const TensorMap& parts) {
  TensorMap all;
  for (const auto& [name, x] : parts) {
    const auto cut = cuts_.find(name);
    all.add(name, cut == cuts_.end() ? detached::clone(x) : whole_of(x, cut->second));
  }
  return all;
}

// Applies f(tensor, cut) to every state tensor with the rank of its parameter, such as "<i>.exp_avg", if that parameter
// is a part.
template <class F> TensorMap Parts::mapped(const optim::Optimizer& optimizer, const TensorMap& state, F&& f) {
  const std::vector<Tensor> parameters = optimizer.parameters();
  TensorMap all;
  for (const auto& [name, x] : state) {
    size_t i = parameters.size();  // no parameter: this is the state of a group
    read_number(std::string_view(name).substr(0, name.find('.')), i);
    const auto cut = i < parameters.size() ? by_tensor_.find(&parameters[i].impl()) : by_tensor_.end();
    all.add(name, cut == by_tensor_.end() || x.rank() != parameters[i].rank() ? x : f(x, *cut->second));
  }
  return all;
}

TensorMap Parts::whole_state(const optim::Optimizer& optimizer) {
  return mapped(optimizer, optimizer.live_state(), [&](const Tensor& x, const Cut& cut) { return whole_of(x, cut); });
}

void Parts::load_state(optim::Optimizer& optimizer, const TensorMap& whole) {
  optimizer.load_state_dict(mapped(optimizer, whole, [&](const Tensor& x, const Cut& cut) { return part_of(x, cut); }));
}

optim::ClipNumbers Parts::clip_numbers(const std::vector<Tensor>& parameters, double max_norm) {
  const DefaultFloatEnvironment environment;
  std::vector<Tensor> own, common;
  for (const Tensor& p : parameters) (is_part(p) ? own : common).push_back(p);
  const double norm = optim::grad_norm(own), rest = optim::grad_norm(common);
  const Tensor square = full({}, norm * norm, {DType::f64});
  group_.all_reduce(square);
  const double all = std::sqrt(square.item() + rest * rest);
  const TensorOptions where{DType::f64, parameters.front().device()};
  return {full({}, all, where), full({}, optim::clip_factor(all, max_norm), where)};
}

}  // namespace isonorm::parallel
