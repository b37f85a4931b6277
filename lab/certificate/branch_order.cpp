#include "lab/certificate/branch_order.h"

#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "nn/branch.h"
#include "streams/attached.h"

namespace isonorm::equivalence {
namespace {

// The map of the stream where BranchOutput does not recognise it as a map of its output. Rows that the stream does not
// store become zeros, so that layer scale and mask have d entries.
struct MapFirst : streams::Writes {
  explicit MapFirst(const streams::Stream& stream) : Writes(stream, 0) {}
  Tensor operator()(const Tensor& raw) const override {
    const Tensor mapped = stream.write(raw, 0);
    Dims missing = raw.shape();
    missing[0] -= mapped.size(0);
    return missing[0] == 0 ? mapped : cat({mapped, zeros(missing, raw.options())}, 0);
  }
  bool is_output_map() const override { return false; }
};

// Leaves out the rows that MapFirst added.
struct StoredEntries : streams::Writes {
  explicit StoredEntries(const streams::Stream& stream) : Writes(stream, 0) {}
  Tensor operator()(const Tensor& x) const override { return narrow(x, 0, 0, stream.stored_width()); }
  Tensor map_output(const Tensor& y) const override { return narrow(y, -1, 0, stream.stored_width()); }
};

// P, also in forms that store d - 1 entries.
struct RecentresFirst : nn::Parametrisation {
  Tensor operator()(const Tensor& raw) const override { return streams::recentre(raw, 0); }
};

}  // namespace

void set_branch_order(nn::Module& model, BranchOrder order) {
  for (const auto& [_, m] : model.named_modules()) {
    auto* branch = dynamic_cast<nn::BranchOutput*>(m);
    if (!branch) continue;
    for (nn::Parameter* p : {&branch->weight, &branch->bias}) {
      const auto* writes = streams::find<streams::Writes>(p->parametrisations());
      if (!writes) continue;
      nn::Parametrisations all = p->parametrisations();  // layer scale, if there is one, and the stream's
      if (order == BranchOrder::map_first) {
        all.back() = std::make_shared<StoredEntries>(writes->stream);
        all.insert(all.begin(), std::make_shared<MapFirst>(writes->stream));
      } else {
        all.insert(all.begin(), std::make_shared<RecentresFirst>());
      }
      p->set_parametrisations(std::move(all));
    }
  }
}

}  // namespace isonorm::equivalence
