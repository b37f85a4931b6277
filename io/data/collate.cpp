#include "io/data/collate.h"

#include "core/kernels/copy.h"
#include "core/view.h"

namespace isonorm::data {

Tensor stacked(const std::vector<Tensor>& tensors, size_t place, std::span<const int64_t> indices) {
  const Tensor& first = tensors.front();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    check(x.defined(), "loader: tensor ", place, " of item ", indices[i], " is undefined");
    check(x.device() == kCpu, "loader: tensor ", place, " of item ", indices[i], " lies on ", x.device(),
          ", expected the CPU; LoaderOptions::device says where batches arrive");
    check(x.dtype() == first.dtype() && x.shape() == first.shape(), "loader: tensor ", place, " of item ", indices[i],
          " is ", x.dtype(), ' ', x.shape(), ", item ", indices[0], "'s is ", first.dtype(), ' ', first.shape(),
          "; the items of a batch have one shape, or the set a gather(indices) that makes the batch");
  }
  Dims shape;
  shape.push_back(std::ssize(tensors));
  for (const int64_t n : first.shape()) shape.push_back(n);
  const Tensor all = empty(shape, {first.dtype()});
  for (size_t i = 0; i < tensors.size(); ++i)
    kernels::copy(detached::view(detached::narrow(all, 0, static_cast<int64_t>(i), 1), first.shape()), tensors[i]);
  return all;
}

void check_same_number(size_t found, size_t expected, std::span<const int64_t> indices, size_t item) {
  check(found == expected, "loader: item ", indices[item], " has ", found, " tensors, item ", indices[0], " has ",
        expected);
}

}  // namespace isonorm::data
