// Module::load_state_dict(): copies named tensors into parameters and buffers, or says what does not fit.
#include <algorithm>
#include <cstring>
#include <set>

#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "nn/module.h"
#include "nn/torch_state.h"

namespace isonorm::nn {
namespace {

bool same_bits(const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
  const auto on_cpu = [](const Tensor& t) {
    Tensor copy = empty(t.shape(), {t.dtype()});
    copy_into(copy, t);
    return copy;
  };
  const Tensor a = on_cpu(x), b = on_cpu(y);
  return std::memcmp(bytes_of(a), bytes_of(b), static_cast<size_t>(byte_size(a))) == 0;
}

// The given tensor for a parameter: under its first name that `state` has. Null if it has none.
const Tensor* given_for(const NamedParameter& p, const TensorMap& state) {
  const Tensor* given = state.find(p.name);
  for (size_t i = 0; !given && i < p.aliases.size(); ++i) given = state.find(p.aliases[i]);
  return given;
}

// True if a tensor that does not fit has a name or a layout of PyTorch's (nn/torch_state.h).
bool is_torch_name(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name.ends_with("in_proj_weight") ||
         name.find("weight_ih_l") != name.npos;
}
bool is_torch_layout(const Dims& given, const Dims& mine) {
  return given.rank == 4 && given != mine && Dims{given[0], given[2], given[3], given[1]} == mine;
}

// What `state` has before names of these parameters ("module.", as DataParallel saves); "": nothing.
std::string prefix_before(const std::vector<NamedParameter>& mine, const TensorMap& state) {
  for (const auto& [name, _] : state)
    for (const NamedParameter& p : mine)
      if (name.ends_with('.' + p.name)) return name.substr(0, name.size() - p.name.size());
  return "";
}

// What to do about tensors that do not fit: a sentence for each way that is known, or nothing.
std::string remedy(const std::vector<NamedParameter>& mine, const TensorMap& state, const LoadedState& found) {
  const std::string prefix = found.missing.size() == mine.size() ? prefix_before(mine, state) : "";
  bool is_torch = std::ranges::any_of(found.unexpected, is_torch_name);
  for (const NamedParameter& p : mine)
    if (const Tensor* given = state.find(prefix + p.name))
      is_torch = is_torch || is_torch_layout(given->shape(), p.tensor.shape());
  const std::string shown = printable(prefix, 80);
  return text(prefix.empty()
                  ? ""
                  : text("; their names begin with '", shown, "', which tensors.below(\"", shown, "\") removes"),
              is_torch ? "; they are PyTorch's, which nn::from_torch(module, tensors) converts" : "");
}

}  // namespace

LoadedState Module::load_state_dict(const TensorMap& state, LoadOptions options) {
  const std::vector<NamedParameter> mine = named_state();
  std::vector<const Tensor*> given;  // for each of mine; null: none
  std::set<std::string_view> names;
  LoadedState found;
  ShortList faults("\n  ");
  for (const NamedParameter& p : mine) {
    names.insert(p.name), names.insert(p.aliases.begin(), p.aliases.end());
    const Tensor* g = given.emplace_back(given_for(p, state));
    if (!g) {
      found.missing.push_back(p.name);
      if (options.strict) faults.add("missing     ", p.name, ' ', p.tensor.shape());
    } else if (g->shape() != p.tensor.shape()) {
      found.mismatched.push_back(p.name);
      if (!options.skip_mismatched)
        faults.add("mis-shaped  ", p.name, ": expected ", p.tensor.shape(), ", given ", g->shape());
      given.back() = nullptr;
    }
    for (const std::string& alias : p.aliases)
      if (const Tensor* again = state.find(alias); again && again != g && !same_bits(*again, *g))
        faults.add("tied        ", alias, " is the tensor ", p.name, ", given other values");
  }
  for (const auto& [name, tensor] : state) {
    if (names.contains(name)) continue;
    found.unexpected.push_back(name);
    if (options.strict) faults.add("unexpected  ", name, ' ', tensor.shape());
  }
  if (!faults.empty())
    check(false, "load_state_dict: the tensors do not fit this module", remedy(mine, state, found), ":\n  ", faults);
  if (!options.strict && found.unexpected.size() == state.size())
    check(false, "load_state_dict: none of the ", state.size(), " tensors has a name of this module",
          state.empty() || mine.empty() ? "" : text(": ", state.begin()->first, " is the first, here ", mine[0].name),
          remedy(mine, state, found));
  check(found.mismatched.empty() || std::any_of(given.begin(), given.end(), [](const Tensor* g) { return g; }),
        "load_state_dict: no tensor has the shape that it has in this module: ", found.mismatched.size(),
        " have another");
  if (state.is_torch())
    for (const std::string& name : convolution_weights(*this))
      check(!state.find(name), "load_state_dict: the tensors are PyTorch's, where ", name,
            " has another layout, though its shape fits; nn::from_torch(module, tensors) converts it");
  bool own = !state.empty();
  for (size_t i = 0; i < mine.size(); ++i) {
    if (!given[i]) continue;
    const NamedParameter& p = mine[i];
    const Tensor& g = *given[i];
    check(g.dtype() == p.tensor.dtype(), "load_state_dict: ", p.name, " is ", g.dtype(), ", this module's is ",
          p.tensor.dtype(), "; convert one of them first: module.to(DType::", g.dtype(), "), or to() of the tensors");
    own = own && g.impl().storage == p.tensor.impl().storage;
  }
  check(!own,
        "load_state_dict: these are this module's own tensors, which went on training; keep values as "
        "clone(state_dict())");
  for (size_t i = 0; i < mine.size(); ++i)
    if (given[i]) copy_into(mine[i].tensor, *given[i]);
  return found;
}

}  // namespace isonorm::nn
