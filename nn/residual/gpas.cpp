#include "nn/residual/gpas.h"

#include <tuple>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {
namespace {

// A connection with a gate: its own parameter "gate", or the gate of the block's first connection.
template <class Base> class Gated : public Base {
 public:
  template <class... Options>
  Gated(const Gated* first, int64_t width, const Options&... options)
      : Base(width, options...),
        gate(first ? this->borrow_parameter("gate", first->gate) : this->add_parameter("gate", zeros({1}))) {}
  Parameter& gate;

 protected:
  Tensor phi(const Tensor& x) const { return x - silu(gate.to(x.dtype())) * detach(x); }
};

template <class Base> class GatedSum : public Gated<Base> {
 public:
  using Gated<Base>::Gated;
  void join(Residual& r, const Tensor& branch) override {
    Base::join(r, branch);
    r.sum = this->phi(r.settle());
  }
};

template <class Base> class GatedShortcut : public Gated<Base> {
 public:
  using Gated<Base>::Gated;

 protected:
  Tensor shortcut(const Tensor& x) const override { return Base::shortcut(this->phi(x)); }
};

// Makes the connections of a block, which share the first one's gate. options(i): a tuple of the constructor's
// arguments for sub-layer i.
template <class C, class Options> BlockConnections with_one_gate(const BlockPlace& place, Options&& options) {
  const C* first = nullptr;
  return each_sublayer(place, [&](int64_t i) {
    auto made = std::apply([&](const auto&... o) { return std::make_unique<C>(first, o...); }, options(i));
    if (!first) first = made.get();
    return made;
  });
}

}  // namespace

std::vector<Tensor> gates(const Module& model) {
  std::vector<Tensor> found;
  for (const NamedParameter& p : model.named_parameters())
    if (p.name.ends_with(".gate")) found.push_back(p.tensor);
  return found;
}

BlockConnections pre_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return with_one_gate<GatedSum<PreNorm>>(place, [&](int64_t) { return std::tuple(width, norms); });
}

BlockConnections lns_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return pre_gpas_block(width, scaled_norms("lns_gpas", norms, place), place);
}

BlockConnections sandwich_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return with_one_gate<GatedSum<Sandwich>>(place, [&](int64_t) { return std::tuple(width, norms); });
}

BlockConnections deeppost_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("deeppost_gpas", place);
  return with_one_gate<GatedShortcut<PostNorm>>(
      place, [&](int64_t i) { return std::tuple(width, norms, post_place(place, i), deep_norm_alpha(place)); });
}

BlockConnections post_pre_gpas_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  check_place("post_pre_gpas", place);
  const int64_t posts = mix_ln_posts("post_pre_gpas", place.depth);
  if (place.index >= posts) return pre_gpas_block(width, norms, place);
  return with_one_gate<GatedShortcut<PostNorm>>(
      place, [&](int64_t i) { return std::tuple(width, norms, post_place(place, i, place.index == posts - 1)); });
}

}  // namespace isonorm::nn
