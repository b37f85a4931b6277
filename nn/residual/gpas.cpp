#include "nn/residual/gpas.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

// Its own parameter "gate", or that of the block's other connection.
template <class Base> class Gated : public Base {
 public:
  template <class... Options>
  Gated(const Gated* first, const Stream& stream, const Options&... options) : Base(stream, options...) {
    gate = first ? first->gate : this->add_parameter("gate", zeros({1}));
  }
  Tensor gate;

 protected:
  Tensor phi(const Tensor& x) const { return x - silu(cast(gate, x.dtype())) * detach(x); }
};

template <class Base> class GatedSum : public Gated<Base> {
 public:
  using Gated<Base>::Gated;
  void join(Residual& r, const Tensor& branch) override {
    Base::join(r, branch);
    r.stream = this->phi(r.settle());
  }
};

template <class Base> class GatedShortcut : public Gated<Base> {
 public:
  using Gated<Base>::Gated;

 protected:
  Tensor shortcut(const Tensor& x) const override { return Base::shortcut(this->phi(x)); }
};

// The block's two connections, which share the first one's gate.
template <class C, class... Options> BlockConnections with_one_gate(const Stream& stream, const Options&... options) {
  auto first = std::make_unique<C>(nullptr, stream, options...);
  auto second = std::make_unique<C>(first.get(), stream, options...);
  return {std::move(first), std::move(second)};
}

// The same of places.
template <class C, class... Options>
BlockConnections with_one_gate(const Stream& stream, const StreamNormOptions& norms,
                               const std::pair<PostPlace, PostPlace>& places, const Options&... options) {
  auto first = std::make_unique<C>(nullptr, stream, norms, places.first, options...);
  auto second = std::make_unique<C>(first.get(), stream, norms, places.second, options...);
  return {std::move(first), std::move(second)};
}

}  // namespace

std::vector<Tensor> gates(const Module& model) {
  std::vector<Tensor> found;
  for (const Parameter& p : model.named_parameters())
    if (p.name.ends_with(".gate")) found.push_back(p.tensor);
  return found;
}

BlockConnections pre_gpas_block(const Stream& stream, const StreamNormOptions& norms, int64_t, int64_t) {
  return with_one_gate<GatedSum<PreNorm>>(stream, norms);
}

BlockConnections lns_gpas_block(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth) {
  check_place("lns_gpas", index, depth);
  return with_one_gate<GatedSum<ScaledNorm>>(stream, norms, 1 / std::sqrt(static_cast<double>(index + 1)));
}

BlockConnections sandwich_gpas_block(const Stream& stream, const StreamNormOptions& norms, int64_t, int64_t) {
  return with_one_gate<GatedSum<Sandwich>>(stream, norms);
}

BlockConnections deeppost_gpas_block(const Stream& stream, const StreamNormOptions& norms, int64_t index,
                                     int64_t depth) {
  check_place("deeppost_gpas", index, depth);
  return with_one_gate<GatedShortcut<DeepNorm>>(stream, norms, post_places(index), depth);
}

BlockConnections post_pre_gpas_block(const Stream& stream, const StreamNormOptions& norms, int64_t index,
                                     int64_t depth) {
  check_place("post_pre_gpas", index, depth);
  const int64_t posts = mix_ln_posts("post_pre_gpas", depth);
  if (index >= posts) return with_one_gate<GatedSum<PreNorm>>(stream, norms);
  return with_one_gate<GatedShortcut<PostNorm>>(stream, norms, post_places(index, index == posts - 1));
}

}  // namespace isonorm::nn
