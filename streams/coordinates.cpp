#include "streams/coordinates.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/memory/kept.h"
#include "core/view.h"
#include "streams/rotation.h"

namespace isonorm::streams {
namespace {

// The Helmert basis in x's dtype and on x's device. The last few are cached: a model needs one or two of them, for
// every weight in every forward.
Tensor basis(int64_t d, const Tensor& x) {
  static auto& kept = *new KeptTensors(4);
  return kept.get({{static_cast<double>(d), 0, 0}, x.dtype(), x.device()},
                  [&] { return std::vector{to(detached::to(helmert(d), x.dtype()), x.device())}; })[0];
}

}  // namespace

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

Tensor to_isometric(const Tensor& x, int dim) { return times(x, dim, basis(x.size(dim), x)); }

Tensor from_isometric(const Tensor& w, int dim) { return times(w, dim, transpose(basis(w.size(dim) + 1, w), 0, 1)); }

Tensor helmert(int64_t d) {
  std::vector<double> q(static_cast<size_t>(d * (d - 1)));
  for (int64_t k = 1; k < d; ++k) {
    const double scale = 1 / std::sqrt(static_cast<double>(k) * static_cast<double>(k + 1));
    for (int64_t row = 0; row < k; ++row) q[row * (d - 1) + k - 1] = scale;
    q[k * (d - 1) + k - 1] = -static_cast<double>(k) * scale;
  }
  return from_vector(q, {d, d - 1});
}

}  // namespace isonorm::streams
