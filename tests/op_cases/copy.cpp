// Row of the copy to another device: there and back, from the device of the tests by way of the CPU.
#include "autograd/ops/copy.h"

#include "tests/op_cases/groups.h"

namespace isonorm::test {

std::vector<OpCase> copy_cases() {
  OpCase op{.name = "to",
            .group = "Devices",
            .signature = "to(x, Device device)",
            .formula = "x on a device: itself where it lies there, else a copy",
            .tolerance = tolerance::exact,
            .refuses = false};
  Draw draw(op.name);
  const auto add = [&](const char* label, Array x) -> Sample& {
    return op.add(
        label, {std::move(x)}, [](const Tensors& x) { return to(to(x[0], kCpu), test_device()); },
        [](const Arrays& x) { return x[0]; });
  };
  for (const Dims& shape : shapes()) {
    add("", draw.normal(shape));
    add("i64", draw.index(shape, 1000));
    add("u8", draw.mask(shape));
  }
  add("", draw.normal(kLarge)).large = true;
  return {op};
}

}  // namespace isonorm::test
