#include "streams/coordinates.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/memory/kept.h"
#include "core/view.h"
#include "streams/rotation.h"

namespace isonorm::streams {
// The last entry is minus the sum of the stored entries, so their common error would enter it d - 1 times. recentre()
// leaves no common error.
Tensor compress_writer(const Tensor& x, int dim) { return narrow(recentre(x, dim), dim, 0, x.size(dim) - 1); }

Tensor expand_writer(const Tensor& v, int dim) { return cat({v, -sum(v, {dim}, true)}, dim); }

Tensor compress_reader(const Tensor& a, int dim) {
  const int64_t last = a.size(dim) - 1;
  return narrow(a, dim, 0, last) - narrow(a, dim, last, 1);
}

// The last entry comes from the sum itself: as minus the sum of the others it would contain the rounding error of the
// mean d - 1 times.
Tensor expand_reader(const Tensor& b, int dim) {
  const Tensor share = sum(b, {dim}, true) / static_cast<double>(b.size(dim) + 1);
  return cat({b - share, -share}, dim);
}

Tensor basis_matrix(const Basis& basis, int64_t d, DType dtype, Device device) {
  static auto& kept = *new KeptTensors(4);
  const auto identity = static_cast<double>(reinterpret_cast<uintptr_t>(&basis));
  return kept.get({{static_cast<double>(d), identity, 0}, dtype, device},
                  [&] { return std::vector{to(detached::to(basis.matrix(d), dtype), device)}; })[0];
}

Tensor to_basis(const Tensor& x, int dim, const Basis& basis) {
  return times(x, dim, basis_matrix(basis, x.size(dim), x.dtype(), x.device()));
}

Tensor from_basis(const Tensor& w, int dim, const Basis& basis) {
  return times(w, dim, transpose(basis_matrix(basis, w.size(dim) + 1, w.dtype(), w.device()), 0, 1));
}

Tensor helmert(int64_t d) {
  std::vector<double> q(static_cast<size_t>(d * (d - 1)));
  for (int64_t k = 1; k < d; ++k) {
    const double scale = 1 / std::sqrt(static_cast<double>(k) * static_cast<double>(k + 1));
    for (int64_t row = 0; row < k; ++row) q[row * (d - 1) + k - 1] = scale;
    q[k * (d - 1) + k - 1] = -static_cast<double>(k) * scale;
  }
  return from_vector(q, {d, d - 1});
}

namespace {

void expand_helmert_row(std::vector<double>& w, bool absolute) {
  const double sign = absolute ? 1 : -1;
  double later = 0;
  w.push_back(0);
  for (size_t i = w.size() - 1; i > 0; --i) {
    const auto k = static_cast<double>(i);
    const double x = w[i - 1] / std::sqrt(k * (k + 1));
    w[i] = later + sign * k * x;
    later += x;
  }
  w[0] = later;
}

}  // namespace

const Basis kHelmert = {"isometric", helmert, expand_helmert_row, [](size_t i) { return i == 0 ? 0 : i - 1; }};

}  // namespace isonorm::streams
