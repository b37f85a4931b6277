#include "labs/1_tensors.h"

#include <stdexcept>

using namespace isonorm;

namespace course {

Tensor without_mean(const Tensor& x) {
  // solution: mean(dims, keepdim) keeps a size of 1, which broadcasts
  return x - x.mean(-1, true);
  // end
}

Tensor diagonal(const Tensor& x) {
  // solution: as_strided() with x.impl().strides and x.impl().offset: how far apart are two entries of the diagonal?
  const TensorImpl& t = x.impl();
  return as_strided(x, {x.size(0)}, {t.strides[0] + t.strides[1]}, t.offset);
  // end
}

Tensor squared_distances(const Tensor& a, const Tensor& b) {
  // solution: [n, 1] - 2 [n, m] + [1, m]
  return a.square().sum(1, true) - a.matmul(b.transpose()) * 2.0 + b.square().sum(1).unsqueeze(0);
  // end
}

Tensor softmax_by_hand(const Tensor& x) {
  // solution: subtracting one number from a whole row scales all exponentials alike
  const Tensor e = (x - x.amax(-1, true)).exp();
  return e / e.sum(-1, true);
  // end
}

Tensor one_hot_by_hand(const Tensor& ids, int64_t classes) {
  // solution: compare a column of ids with a row of 0 .. classes - 1; comparisons give u8
  return (ids.unsqueeze(1) == arange(classes).unsqueeze(0)).to(DType::f64);
  // end
}

}  // namespace course
