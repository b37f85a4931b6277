// Rows of copies. The copy to another device goes from the tests' device to the CPU and back.
#include "autograd/ops/create.h"

#include "tests/op_cases/groups.h"

namespace isonorm::test {

namespace {

OpCase row(std::string name, std::string parameters, std::string formula, Tensor (*call)(const Tensor&)) {
  OpCase op = row_of("Copies", name, parameters, std::move(formula));
  op.refuses = false;
  const auto add = [&](const char* label, Array x) -> Sample& {
    return op.add(
        label, {std::move(x)}, [call](const Tensors& x) { return call(x[0]); }, [](const Arrays& x) { return x[0]; });
  };
  for (const Dims& shape : shapes()) {
    add("", op.draw.normal(shape));
    add("i64", op.draw.index(shape, 1000));
    add("u8", op.draw.mask(shape));
  }
  add("", op.draw.normal(kLarge)).large = true;
  return op;
}

}  // namespace

std::vector<OpCase> copy_cases() {
  return {row("to", "(x, Device device)", "x on a device: itself where it lies there, else a copy",
              [](const Tensor& x) { return to(to(x, kCpu), test_device()); }),
          row("clone", "(x)", "a copy of x", [](const Tensor& x) { return clone(x); })};
}

}  // namespace isonorm::test
