#include "equivalence/parametrisation.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::equivalence {
namespace {

using nn::Role;
using nn::StreamForm;
using nn::StreamStorage;

// D v = (v, -sum v) along `dim`.
Tensor expand_plain(const Tensor& v, int dim) { return cat({v, -sum(v, {dim}, true)}, dim); }

// D (D^T D)^-1 v = D (v - sum(v)/d), since D^T D = I + 11^T and d = size + 1.
Tensor expand_dual(const Tensor& v, int dim) {
  return expand_plain(v - sum(v, {dim}, true) / static_cast<double>(v.size(dim) + 1), dim);
}

// Q v along `dim`.
Tensor expand_isometric(const Tensor& v, int dim) {
  const Tensor qt = transpose(cast(nn::helmert(v.size(dim) + 1), v.dtype()), 0, 1);
  return v.rank() == 1 ? matmul(v, qt) : transpose(matmul(transpose(v, dim, -1), qt), dim, -1);
}

// A mapped value in raw coordinates. `dual` chooses between the two ways in which the compressed form expands.
Tensor expand_mapped(const Tensor& v, int dim, StreamForm form, bool dual) {
  if (form == StreamForm::crms_isometric) return expand_isometric(v, dim);
  if (form == StreamForm::crms_norm) return dual ? expand_dual(v, dim) : expand_plain(v, dim);
  return v;
}

}  // namespace

TensorMap mapped_state(const nn::Module& raw, const nn::Stream& stream) {
  NoGrad no_grad;
  TensorMap out;
  for (const nn::Parameter& p : raw.named_parameters()) {
    const Tensor value = detach(p.tensor);
    out.add(p.name, p.role == Role::writer   ? stream.map_writer(value, p.stream_dim)
                    : p.role == Role::reader ? stream.map_reader(value)
                                             : value);
  }
  return out;
}

Tensor raw_gradient(const Tensor& gradient, const nn::Parameter& p, const nn::Stream& stream) {
  if (stream.storage() == StreamStorage::raw || p.role == Role::neutral) return gradient;
  NoGrad no_grad;
  return expand_mapped(gradient, p.stream_dim, stream.form(), p.role == Role::writer);
}

Tensor visible_weight(const nn::Parameter& p, const nn::Stream& stream, bool reader_blind) {
  NoGrad no_grad;
  Tensor w = detach(p.tensor);
  if (p.role != Role::neutral && stream.storage() == StreamStorage::mapped)
    w = expand_mapped(w, p.stream_dim, stream.form(), p.role == Role::reader);
  if (p.role == Role::writer || (p.role == Role::reader && reader_blind)) w = nn::recentre(w, p.stream_dim);
  if (p.blind_end > p.blind_begin) {
    Tensor copy = empty_like(w);
    copy_into(copy, w);
    fill(narrow(copy, 0, p.blind_begin, p.blind_end - p.blind_begin), 0);
    return copy;
  }
  return w;
}

}  // namespace isonorm::equivalence
