#include "exchange/hub/flax.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "core/view.h"
#include "io/safetensors.h"

namespace isonorm::hub {
namespace {

// order[i] is the Flax axis that becomes PyTorch's axis i; empty: the axes stay. An axis of an element's bytes stays
// last.
std::vector<int> order_of(const io::TensorEntry& flax, int parts) {
  if (!flax.name.ends_with(".kernel")) return {};
  const int rank = flax.shape.rank - parts;
  check(rank >= 1 && rank <= 4, Shown{flax.name}, " has ", rank, " dimensions, a Flax kernel has 1 to 4");
  std::vector<int> order = rank == 4 ? std::vector{3, 2, 0, 1} : std::vector<int>();
  for (int i = rank; order.size() < static_cast<size_t>(rank);) order.push_back(--i);
  if (parts > 0) order.push_back(rank);
  return order;
}

struct Source {
  io::TensorEntry entry;
  std::vector<int> order;
};

}  // namespace

std::string pytorch_name(std::string name) {
  constexpr struct {
    std::string_view flax, pytorch;
  } kEnds[] = {{".kernel", ".weight"},
               {".scale", ".weight"},
               {".embedding", ".weight"},
               {".weight_g", ".parametrizations.weight.original0"},
               {".weight_v", ".parametrizations.weight.original1"}};
  std::ranges::replace(name, '/', '.');
  for (const auto& end : kEnds)
    if (name.ends_with(end.flax)) return name.substr(0, name.size() - end.flax.size()).append(end.pytorch);
  return name;
}

Shard from_flax(const Shard& flax) {
  const auto sources = std::make_shared<std::map<std::string, Source>>();
  Shard shard;
  for (const io::TensorEntry& e : flax.entries) {
    check(!e.name.starts_with("batch_stats."), Shown{e.name}, " belongs to a Flax batch norm, which is not supported");
    const bool wide = !e.foreign.empty() && io::element_size(e) > 1;
    const std::vector<int> order = order_of(e, wide);
    io::TensorEntry& ours = shard.entries.emplace_back(e);
    ours.name = pytorch_name(e.name);
    for (size_t i = 0; i < order.size(); ++i) ours.shape[static_cast<int>(i)] = e.shape[order[i]];
    const auto [at, fresh] = sources->emplace(ours.name, Source{e, order});
    check(fresh, Shown{at->second.entry.name}, " and ", Shown{e.name}, " of Flax are both ", Shown{ours.name});
  }
  shard.read = [sources, read = flax.read](const io::TensorEntry& e) {
    const Source& source = sources->at(e.name);
    const Tensor x = read(source.entry);
    return source.order.empty() ? x : detached::contiguous(detached::permute(x, source.order));
  };
  return shard;
}

}  // namespace isonorm::hub
