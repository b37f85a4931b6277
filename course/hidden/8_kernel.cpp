// Hidden tests of lab 8.
#include "labs/8_kernel.h"

#include <algorithm>
#include <vector>

#include "support/tests.h"

namespace course {
namespace {

const Test kWidths(
    "every width up to 70, and nothing outside y is written", 2,
    [] {
      constexpr int64_t kRows = 5;
      for (int64_t n = 1; n <= 70; ++n) {
        const Tensor x = random({kRows, n}, static_cast<uint64_t>(n)).to(DType::f32);
        std::vector<float> y(static_cast<size_t>(kRows * n + 128), 7);  // 64 guard entries on either side
        rms_norm_rows(x.data<float>(), y.data() + 64, kRows, n, 1e-5f);
        check(std::count(y.begin(), y.begin() + 64, 7.f) == 64 && std::count(y.end() - 64, y.end(), 7.f) == 64,
              "width ", n, ": an entry outside y was written");
        expect_close("y", from_vector(std::vector<float>(y.begin() + 64, y.end() - 64), {kRows, n}),
                     rms_norm(x.to(DType::f64)).to(DType::f32), 1);
      }
    },
    Seen::hidden);

const Test kThreads(
    "the bits are the same with one thread", 1,
    [] {
      const Tensor x = random({301, 77}, 9).to(DType::f32), y = empty_like(x), z = empty_like(x);
      rms_norm_rows(x.data<float>(), y.mutable_data<float>(), 301, 77, 1e-5f);
      set_num_threads(1);
      rms_norm_rows(x.data<float>(), z.mutable_data<float>(), 301, 77, 1e-5f);
      check((y == z).to(DType::f32).amin().item() == 1, "they differ");
    },
    Seen::hidden);

}  // namespace
}  // namespace course
