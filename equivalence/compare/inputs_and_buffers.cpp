#include "equivalence/compare/inputs_and_buffers.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "core/view.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/judge/pairs.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {
namespace {

// A's buffer as B stores it; undefined if the map does not fit it.
Tensor image_of(const Route& route, const Tensor& buffer) {
  try {
    return route.forward(detached::clone(detached::to(buffer, DType::f64)));
  } catch (const Error&) {
    return {};
  }
}

// True if a buffer of A and its partner start alike.
bool are_comparable(const Tensor& a, const Tensor& b, const Route& route, DType dtype) {
  if (a.dtype() != b.dtype() || (is_floating(a.dtype()) && a.dtype() != dtype)) return false;
  const Tensor image = image_of(route, a);
  if (!image.defined() || image.shape() != b.shape() || !training::is_finite(image) || !training::is_finite(b))
    return false;
  return deviation({{"", detached::to(b, DType::f64), image, largest_entry(image)}}) <= bound(0, dtype);
}

}  // namespace

TrackedInputs::TrackedInputs(const training::Examples& batch) : batch_(batch) {
  batch_.inputs = tracked(batch.inputs, "inputs");
  for (size_t i = 0; i < batch.more.size(); ++i) batch_.more[i] = tracked(batch.more[i], text("more[", i, "]"));
}

Tensor TrackedInputs::tracked(const Tensor& x, const std::string& name) {
  if (!x.defined() || !is_floating(x.dtype())) return x;
  const Tensor leaf = require_grad(detached::clone(x));
  leaf.impl().node->owned = true;  // no training step has to warn that nothing trains it
  leaves_.push_back(leaf);
  names_.push_back(name);
  return clone(leaf);
}

std::vector<Tensor> TrackedInputs::gradients() const {
  std::vector<Tensor> all;
  for (const Tensor& leaf : leaves_) {
    const Tensor g = leaf.grad();
    all.push_back(g.defined() ? g : zeros(leaf.shape(), leaf.options()));
  }
  return all;
}

BufferPairs::BufferPairs(const nn::Module& a, const nn::Module& b, const ParameterMap& map, DType dtype) {
  NoGrad no_grad;
  const TensorMap first = buffers_of(a), second = buffers_of(b);
  std::vector<std::string> reached;
  for (const auto& [name, buffer] : first) {
    const auto route = map.route(name);
    const Tensor* partner = route ? second.find(route->name) : nullptr;
    if (partner) reached.push_back(route->name);
    if (partner && are_comparable(buffer, *partner, *route, dtype))
      names_.push_back(name), routes_.push_back(*route);
    else if (!partner || !route->legs.empty() || !same_bytes(buffer, *partner))  // for example a mask of infinities
      unpaired_.push_back(name);
  }
  for (const auto& [name, _] : second)
    if (std::ranges::find(reached, name) == reached.end()) unpaired_.push_back(name + " of the second model");
}

std::vector<Tensor> BufferPairs::of_first(const nn::Module& a) const {
  NoGrad no_grad;
  const TensorMap buffers = buffers_of(a);
  std::vector<Tensor> all;
  for (size_t i = 0; i < names_.size(); ++i) all.push_back(image_of(routes_[i], *buffers.find(names_[i])));
  return all;
}

std::vector<Tensor> BufferPairs::of_second(const nn::Module& b) const {
  const TensorMap buffers = buffers_of(b);
  std::vector<Tensor> all;
  for (const Route& r : routes_) all.push_back(detached::clone(detached::to(*buffers.find(r.name), DType::f64)));
  return all;
}

TensorMap buffers_of(const nn::Module& module) {
  const std::vector<Tensor> parameters = module.parameters();
  TensorMap buffers;
  for (const nn::NamedParameter& s : module.named_state())
    if (std::ranges::none_of(parameters, [&](const Tensor& p) { return &p.impl() == &s.tensor.impl(); }))
      buffers.add(s.name, s.tensor);
  return buffers;
}

}  // namespace isonorm::equivalence
