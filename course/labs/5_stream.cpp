#include "labs/5_stream.h"

#include <cmath>
#include <stdexcept>

using namespace isonorm;

namespace course {

Tensor helmert_basis(int64_t d) {
  // solution: fill a row-major vector of d (d - 1) numbers, then from_vector
  std::vector<double> q(static_cast<size_t>(d * (d - 1)));
  for (int64_t k = 1; k < d; ++k)
    for (int64_t row = 0; row <= k; ++row)
      q[static_cast<size_t>(row * (d - 1) + k - 1)] =
          (row < k ? 1. : -static_cast<double>(k)) / std::sqrt(static_cast<double>(k * (k + 1)));
  return from_vector(q, {d, d - 1});
  // end
}

Tensor stored_writer(Form form, const Tensor& w) {
  // solution: the columns of W are added to the stream, so P and Q^T act along dimension 0
  if (form == Form::layer_norm) return w;
  if (form == Form::crms_isometric) return matmul(helmert_basis(w.size(0)).transpose(), w);
  const Tensor centred = w - w.mean(0, true);
  return form == Form::rms_norm ? centred : narrow(centred, 0, 0, w.size(0) - 1);
  // end
}

Tensor stored_reader(Form form, const Tensor& a) {
  // solution: a reader is multiplied with rows of the stream, so D and Q act along dimension 1
  const int64_t d = a.size(1);
  if (form == Form::crms_norm) return narrow(a, 1, 0, d - 1) - narrow(a, 1, d - 1, 1);
  return form == Form::crms_isometric ? matmul(a, helmert_basis(d)) : a;
  // end
}

Tensor stored_norm(Form form, const Tensor& rows, double eps) {
  // solution: with n the stored width: which sum of squares, and which divisor?
  const auto n = static_cast<double>(rows.size(-1));
  const Tensor x = form == Form::layer_norm ? rows - rows.mean(-1, true) : rows;
  const bool compressed = form == Form::crms_norm || form == Form::crms_isometric;
  Tensor squares = x.square().sum(-1, true);
  if (form == Form::crms_norm) squares = squares + x.sum(-1, true).square();
  return x / (squares / (compressed ? n + 1 : n) + eps).sqrt();
  // end
}

Tensor restored(Form form, const Tensor& rows) {
  // solution: P x | x | D v = (v, -sum v) | Q w
  if (form == Form::layer_norm) return rows - rows.mean(-1, true);
  if (form == Form::crms_norm) return cat({rows, -rows.sum(-1, true)}, -1);
  return form == Form::rms_norm ? rows : matmul(rows, helmert_basis(rows.size(-1) + 1).transpose());
  // end
}

Reader folded(const Reader& reader, const Tensor& gain, const Tensor& bias) {
  // solution: A' = A diag(gain), b' = b + A bias
  return {reader.weight * gain, reader.bias + matmul(reader.weight, bias)};
  // end
}

}  // namespace course
