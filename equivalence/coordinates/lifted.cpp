#include "equivalence/coordinates/lifted.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/coordinates/parametrisation.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

void correct_gradients(const std::vector<streams::NamedParameter>& parameters, const streams::Stream& stream) {
  NoGrad no_grad;
  for (const streams::NamedParameter& p : parameters) {
    const Map m = stored_map(p, stream);
    if (const Tensor g = p.tensor.grad(); g.defined())
      set_grad(p.tensor, contiguous((m * m.adjoint())(g, p.stream_dim)));
  }
}

double raw_gradient_norm(const std::vector<streams::NamedParameter>& parameters, const streams::Stream& stream) {
  NoGrad no_grad;
  double squares = 0;
  for (const streams::NamedParameter& p : parameters)
    if (const Tensor g = p.tensor.grad(); g.defined()) {
      const double n = norm(stored_map(p, stream).adjoint()(g, p.stream_dim)).item();
      squares += n * n;
    }
  return std::sqrt(squares);
}

Lifted::Lifted(std::vector<streams::NamedParameter> parameters, const streams::Stream& stream, const Make& make)
    : parameters_(std::move(parameters)), stream_(stream) {
  check(stream.storage() == streams::Stored::mapped, "lifted: the stream's parameters are raw, expected mapped ones");
  for (const streams::NamedParameter& p : parameters_) {
    raw_.push_back(p.tensor);
    if (!mapped(p)) continue;
    NoGrad no_grad;
    const Tensor value = restoring_map(p, stream_)(p.tensor, p.stream_dim);
    raw_.back() = empty(value.shape(), value.options());  // a tensor of its own, even if the map is the identity
    copy_into(raw_.back(), value);
    require_grad(raw_.back());
  }
  optimizer_ = make(raw_);
}

void Lifted::zero_grad() {
  for (size_t i = 0; i < raw_.size(); ++i) {
    set_grad(raw_[i], {});
    set_grad(parameters_[i].tensor, {});
  }
}

bool Lifted::mapped(const streams::NamedParameter& p) const { return !stored_map(p, stream_).is_identity(); }

void Lifted::lift() {
  NoGrad no_grad;
  for (size_t i = 0; i < raw_.size(); ++i) {
    const streams::NamedParameter& p = parameters_[i];
    if (!mapped(p)) continue;
    copy_into(raw_[i], restoring_map(p, stream_)(detach(p.tensor), p.stream_dim));
    const Tensor g = p.tensor.grad();
    set_grad(raw_[i], g.defined() ? contiguous(stored_map(p, stream_).adjoint()(g, p.stream_dim)) : Tensor());
  }
}

void Lifted::step(double gradient_scale) {
  optimizer_->step(gradient_scale);
  NoGrad no_grad;
  for (size_t i = 0; i < raw_.size(); ++i)
    if (const streams::NamedParameter& p = parameters_[i]; mapped(p))
      copy_into(p.tensor, stored_map(p, stream_)(raw_[i], p.stream_dim));
}

}  // namespace isonorm::equivalence
