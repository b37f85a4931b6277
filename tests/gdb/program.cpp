// The program that gdb_test.py inspects.
#include "isonorm.h"

using namespace isonorm;

int main() {
  const Tensor x = tensor({{1.5f, -2.f, 0.1f}, {4.f, 5.f, 6.f}});
  const Tensor turned = x.transpose(), second = x[1], none, empty = zeros({0, 3}), scalar = full({}, 7);
  const Tensor rounded = x.to(DType::bf16), ids = tensor({1, -2}), mask = tensor({true, false}),
               wide = tensor({1. / 3});
  const Tensor many = arange(1000.).reshape({10, 100});
  auto column = x(Slice(), 0);
  nn::Linear layer(2, 1);
  nn::Parameter& weight = layer.weight;
  fill(weight, 0.25);
  [[maybe_unused]] const Dims shape = x.shape();
  Tensor last = x + 1;
  last.backward(Tensor());  // gdb stops here
}
