#include "training/steps/examples.h"

#include "autograd/ops/shape.h"

namespace isonorm::training {

Examples Examples::rows(int64_t begin, int64_t count) const {
  const int64_t all = this->count();
  return each([&](const Tensor& x) {
    check(x.rank() > 0 && x.size(0) == all, "examples: a tensor ", x.shape(), " beside ", all,
          " targets, expected the same number of rows");
    return narrow(x, 0, begin, count);
  });
}

Examples Examples::on(Device device) const {
  return each([&](const Tensor& x) { return to(x, device); });
}

std::vector<Tensor> Examples::tensors() const {
  std::vector<Tensor> all = {inputs, targets};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Examples examples_of_tensors(std::vector<Tensor> tensors) {
  check(tensors.size() >= 2, "examples: a batch of ", tensors.size(), " tensors, expected inputs and targets");
  Examples e{tensors[0], tensors[1], {}};
  e.more.assign(tensors.begin() + 2, tensors.end());
  return e;
}

}  // namespace isonorm::training
