// gpu/ as nvcc compiles it. Without a driver there are no devices, which is not an error; with one, fill and copies run
// there.
#include "core/kernels/copy.h"
#include "core/memory/storage.h"
#include "gpu/device.h"
#include "gpu/transfer.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("without a device each request says why") {
  if (gpu::device_count() > 0) return;
  CHECK_THAT(gpu::why_none(), Contains("no device: "));
  CHECK_THROWS_WITH(start_cuda(), Contains("cuda: no device: "));
  CHECK_THROWS_WITH(gpu::synchronize(), Contains("cuda: no device: "));
}

TEST_CASE("with a device, fill and copies are right there") {
  if (gpu::device_count() == 0) {
    WARN("not run, " << gpu::why_none());
    return;
  }
  WARN(gpu::device_name());
  start_cuda();
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8})
    for (const int64_t n : {1, 17, 1000, 10000000}) {
      INFO(name_of(d) << ", " << n);
      const Tensor x = empty({n}, {d, {DeviceKind::cuda, 0}}), y = empty({n}, {d});
      kernels::fill(x, 3);
      kernels::fill(as_strided(x, {(n + 2) / 3}, {3}, 0), 5);
      gpu::transfer(y, x);
      const std::vector<double> got = y.to_vector<double>();
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) wrong += got[static_cast<size_t>(i)] != (i % 3 == 0 ? 5 : 3);
      CHECK(wrong == 0);
      gpu::transfer(x, y);
      gpu::transfer(y, x);
      CHECK(y.to_vector<double>() == got);
    }
  CHECK(gpu::memory().held > 0);
  gpu::synchronize();
}
