#include "nn/torch_state.h"

#include <algorithm>
#include <map>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/system/foreign_text.h"
#include "nn/attention.h"
#include "nn/conv.h"
#include "nn/group_norm.h"
#include "nn/recurrent/recurrent.h"
#include "nn/transformer.h"

namespace isonorm::nn {
namespace {

// A tensor of a module, with its name and layout in PyTorch.
struct Spelling {
  std::string ours, theirs;
  Tensor tensor;                // here
  bool is_convolution = false;  // a weight whose dimension 1 in PyTorch is the last one here
  int64_t first_row = 0;        // in PyTorch's tensor, which may hold two of ours one after the other
  int64_t rows = 0;             // of PyTorch's tensor
  bool is_part() const { return tensor.rank() > 0 && tensor.size(0) != rows; }
};

// Prefixes of names below a module, ours and PyTorch's.
using Renames = std::vector<std::pair<std::string, std::string>>;

Renames renames_of(const Module& module) {
  if (dynamic_cast<const MultiheadAttention*>(&module)) return {{"qkv.", "in_proj_"}, {"proj.", "out_proj."}};
  if (dynamic_cast<const CrossAttention*>(&module))
    return {{"q.", "in_proj_"}, {"kv.", "in_proj_"}, {"proj.", "out_proj."}};
  Renames renames;
  if (dynamic_cast<const TransformerBlock*>(&module)) {
    renames = {{"attn.", "self_attn."}, {"mlp.fc1.", "linear1."}, {"mlp.fc2.", "linear2."}};
    if (std::ranges::any_of(module.children(), [](const auto& c) { return c->name() == "cross"; }))
      renames.insert(renames.end(), {{"norm2.", "norm3."}, {"cross_norm.", "norm2."}, {"cross.", "multihead_attn."}});
  } else if (dynamic_cast<const TransformerStack*>(&module)) {
    for (const auto& child : module.children())
      renames.emplace_back(child->name() + '.', "layers." + child->name() + '.');
  } else if (const auto* r = dynamic_cast<const Recurrent*>(&module)) {
    for (int64_t layer = 0; layer < r->options.layers; ++layer)
      for (const auto& [direction, ending] : {std::pair("forward", ""), std::pair("backward", "_reverse")})
        for (const char* kind : {"weight", "bias"}) {
          renames.emplace_back(text(direction, layer, ".input.", kind), text(kind, "_ih_l", layer, ending));
          renames.emplace_back(text(direction, layer, ".recurrent.", kind), text(kind, "_hh_l", layer, ending));
        }
  }
  return renames;
}

// PyTorch's weight of a convolution [a, b, sizes...] as [a, sizes..., b], and back.
Tensor channels_last(const Tensor& x) {
  return x.rank() == 3 ? x.permute({0, 2, 1}).contiguous() : x.permute({0, 2, 3, 1}).contiguous();
}
Tensor channels_first(const Tensor& x) {
  return x.rank() == 3 ? x.permute({0, 2, 1}).contiguous() : x.permute({0, 3, 1, 2}).contiguous();
}

bool is_convolution(const Module& m) {
  return dynamic_cast<const Conv1d*>(&m) || dynamic_cast<const Conv2d*>(&m) || dynamic_cast<const ConvTranspose2d*>(&m);
}

std::string prefix_of(const std::string& path) { return path.empty() ? "" : path + '.'; }

// All parameters and buffers, including the aliases of tied ones.
std::vector<Spelling> spellings_of(const Module& module) {
  std::vector<Spelling> all;
  for (const NamedParameter& p : module.named_state()) {
    all.push_back({p.name, p.name, p.tensor});
    for (const std::string& alias : p.aliases) all.push_back({alias, alias, p.tensor});
  }
  const auto modules = module.named_modules();
  for (auto m = modules.rbegin(); m != modules.rend();
       ++m) {  // inner modules first, so that outer prefixes are still ours
    const std::string prefix = prefix_of(m->first);
    const Renames renames = renames_of(*m->second);
    for (Spelling& s : all) {
      if (!s.theirs.starts_with(prefix)) continue;
      if (s.ours == prefix + "weight") s.is_convolution = is_convolution(*m->second);
      for (const auto& [ours, theirs] : renames)
        if (s.theirs.compare(prefix.size(), ours.size(), ours) == 0) {
          s.theirs.replace(prefix.size(), ours.size(), theirs);
          break;
        }
    }
  }
  std::map<std::string, int64_t> rows;  // of PyTorch's tensors
  for (Spelling& s : all)
    if (s.tensor.rank() > 0) {
      s.first_row = rows[s.theirs];
      rows[s.theirs] += s.tensor.size(0);
    }
  for (Spelling& s : all) s.rows = rows[s.theirs];
  return all;
}

// PyTorch's counter of a BatchNorm's batches, which a fixed momentum does not read.
std::string counter_of(const std::string& path, const Module& module) {
  return dynamic_cast<const BatchNorm*>(&module) ? prefix_of(path) + "num_batches_tracked" : "";
}

// True if a tensor that does not fit has a name or a layout of PyTorch's (nn/torch_state.h).
bool is_torch_name(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name.ends_with("in_proj_weight") ||
         name.find("weight_ih_l") != name.npos;
}
bool is_torch_layout(const Dims& given, const Dims& mine) {
  return given.rank == 4 && given != mine && Dims{given[0], given[2], given[3], given[1]} == mine;
}

// The prefix that `state` puts before the names of these parameters ("module.", as DataParallel saves); "" if there is
// none.
std::string prefix_before(const std::vector<NamedParameter>& mine, const TensorMap& state) {
  for (const auto& [name, _] : state)
    for (const NamedParameter& p : mine)
      if (name.ends_with('.' + p.name)) return name.substr(0, name.size() - p.name.size());
  return "";
}

}  // namespace

TensorMap from_torch(const Module& module, const TensorMap& state) {
  const NoGrad no_grad;
  TensorMap result;
  std::set<std::string> taken;
  for (const Spelling& s : spellings_of(module)) {
    const Tensor* found = state.find(s.theirs);
    if (!found) continue;
    taken.insert(s.theirs);
    Tensor x = *found;
    if (s.is_convolution) {
      check(x.rank() == s.tensor.rank(), "from_torch: ", s.theirs, " is ", x.shape(), ", expected ",
            s.tensor.rank() == 3 ? "[out, in, kernel]" : "[out, in, height, width]");
      x = channels_last(x);
    }
    if (s.is_part()) {
      check(x.rank() > 0 && x.size(0) == s.rows, "from_torch: ", s.theirs, " is ", x.shape(), ", expected ", s.rows,
            " rows");
      x = narrow(x, 0, s.first_row, s.tensor.size(0));
    }
    result.add(s.ours, x);
  }
  for (const auto& [path, m] : module.named_modules()) taken.insert(counter_of(path, *m));
  for (const auto& [name, x] : state)
    if (!taken.contains(name)) result.add(name, x);
  return result;
}

std::vector<std::string> convolution_weights(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [path, m] : module.named_modules())
    if (is_convolution(*m)) names.push_back(prefix_of(path) + "weight");
  return names;
}

std::string remedy_for(const Module& module, const TensorMap& state) {
  const std::vector<NamedParameter> mine = module.named_state();
  std::set<std::string_view> names;
  for (const NamedParameter& p : mine) names.insert(p.name), names.insert(p.aliases.begin(), p.aliases.end());
  bool is_any_known = false, is_torch = false;
  for (const auto& [name, _] : state) {
    is_any_known = is_any_known || names.contains(name);
    is_torch = is_torch || (!names.contains(name) && is_torch_name(name));
  }
  const std::string prefix = is_any_known ? "" : prefix_before(mine, state);
  for (const NamedParameter& p : mine)
    if (const Tensor* given = state.find(prefix + p.name))
      is_torch = is_torch || is_torch_layout(given->shape(), p.tensor.shape());
  const std::string shown = printable(prefix, 80);
  return text(prefix.empty()
                  ? ""
                  : text("; their names begin with '", shown, "', which tensors.below(\"", shown, "\") removes"),
              is_torch ? "; they are PyTorch's, which nn::from_torch(module, tensors) converts" : "");
}

TensorMap to_torch(const Module& module) {
  const NoGrad no_grad;
  TensorMap result;
  result.set_torch(true);
  std::map<std::string, std::vector<Tensor>> parts;
  for (const Spelling& s : spellings_of(module)) {
    const Tensor x = s.is_convolution ? channels_first(s.tensor) : detach(s.tensor);
    if (!s.is_part()) {
      result.add(s.theirs, x);
    } else {
      parts[s.theirs].push_back(x);
      if (s.first_row + x.size(0) == s.rows) result.add(s.theirs, cat(parts[s.theirs]));
    }
  }
  for (const auto& [path, m] : module.named_modules())
    if (const std::string counter = counter_of(path, *m); !counter.empty()) result.add(counter, tensor(0));
  return result;
}

}  // namespace isonorm::nn
