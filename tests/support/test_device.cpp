#include "tests/support/test_device.h"

namespace isonorm::test {
namespace {
Device device = kCpu;
}

Device test_device() { return device; }
void set_test_device(Device d) { device = d; }

Tensor on_test_device(const Tensor& x) {
  if (x.device() == device) return x;
  const Tensor there = empty(x.shape(), {x.dtype(), device});
  copy_into(there, x);
  return there;
}

}  // namespace isonorm::test
