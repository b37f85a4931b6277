#include "equivalence/coordinates/parametrisation.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
using streams::Role;

Map stored_map(const streams::NamedParameter& p, const streams::Stream& stream) {
  if (p.role == Role::neutral || stream.storage() == streams::Stored::raw)
    return Map::identity(p.tensor.size(p.stream_dim));
  return row_of(stream.form()).map(p.role, stream.width());
}

Map restoring_map(const streams::NamedParameter& p, const streams::Stream& stream) {
  const Map m = stored_map(p, stream);
  return m.outputs() < m.inputs() ? m.right_inverse() : Map::identity(m.outputs());
}

TensorMap mapped_state(const nn::Module& raw, const streams::Stream& stream) {
  NoGrad no_grad;
  TensorMap out;
  for (const streams::NamedParameter& p : streams::named_parameters(raw))
    out.add(p.name, stored_map(p, stream)(detach(p.tensor), p.stream_dim));
  return out;
}

void project(const std::vector<streams::NamedParameter>& parameters, Projection projection) {
  if (projection == Projection::none) return;
  NoGrad no_grad;
  for (const streams::NamedParameter& p : parameters)
    if (p.role == Role::writer || (p.role == Role::reader && projection == Projection::writers_and_readers))
      copy_into(p.tensor, streams::recentre(p.tensor, p.stream_dim));
}

Tensor raw_gradient(const Tensor& gradient, const streams::NamedParameter& p, const streams::Stream& stream) {
  NoGrad no_grad;
  return restoring_map(p, stream).left_inverse().adjoint()(gradient, p.stream_dim);
}

Tensor visible_weight(const streams::NamedParameter& p, const streams::Stream& stream, bool reader_blind) {
  NoGrad no_grad;
  Tensor w = restoring_map(p, stream)(detach(p.tensor), p.stream_dim);
  if (p.role == Role::writer || (p.role == Role::reader && reader_blind)) w = streams::recentre(w, p.stream_dim);
  if (p.blind_end == p.blind_begin) return w;
  w = detached::clone(w);
  fill(narrow(w, 0, p.blind_begin, p.blind_end - p.blind_begin), 0);
  return w;
}

}  // namespace isonorm::equivalence
