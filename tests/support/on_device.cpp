// A program with this source runs its tests on cuda:0.
#include "core/memory/storage.h"
#include "tests/support/device.h"
#include "tests/support/test_device.h"

namespace isonorm::test {
namespace {
[[maybe_unused]] const bool started = [] {
  start_cuda();
  set_test_device(kCuda);
  return true;
}();
}  // namespace
}  // namespace isonorm::test
