#include "autograd/ops/distance.h"

#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm {
namespace {

void check_vectors(const Tensor& a, const Tensor& b, const char* op) {
  check_same_device(op, a, b);
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), op, ": dtypes are ", a.dtype(), " and ", b.dtype(),
        ", expected one floating dtype");
}
Tensor wide_vectors(const Tensor& x) { return to(x, acc_dtype(x.dtype())); }

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b) {
  check_vectors(a, b, "cdist");
  check(a.rank() >= 2 && b.rank() >= 2 && a.size(-1) == b.size(-1), "cdist: ", a.shape(), " and ", b.shape(),
        ", expected rows [..., n, width] and [..., m, width]");
  const Scope scope("cdist");
  return to(norm(sub(unsqueeze(wide_vectors(a), -2), unsqueeze(wide_vectors(b), -3)), {-1}), a.dtype());
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int dim, double eps) {
  check_vectors(a, b, "cosine_similarity");
  const Scope scope("cosine_similarity");
  const Tensor x = wide_vectors(a), y = wide_vectors(b), products = mul(x, y);
  const auto length = [&](const Tensor& v) { return maximum(norm(expand(v, products.shape()), {dim}), eps); };
  return to(div(sum(products, {dim}), mul(length(x), length(y))), a.dtype());
}

}  // namespace isonorm
