// Rounding that keeps the sum of a slice: every entry becomes one of its two neighbours, and the sum's error does not
// grow with the width.
#include "equivalence/convert/sum_rounding.h"

#include <cmath>

#include "core/system/parallel.h"
#include "equivalence/convert/convert.h"
#include "equivalence/judge/pairs.h"
#include "tests/equivalence/gpt2.h"
#include "tests/equivalence/room.h"
#include "tests/support/same_bytes.h"

namespace {

// Numbers of the format minus the mean of each slice. In a binade, all have the same rounding error.
Tensor centred(const Dims& shape, int dim, NumberFormat format) {
  Generator generator{3, 0};
  const Tensor x = rounded(randn(shape, {DType::f64}, generator) * 0.02, format, "x").to(DType::f64);
  return x - mean(x, {dim}, true);
}

double at(const Tensor& x, int dim, int64_t slice, int64_t i) {
  const int64_t columns = x.size(1);
  return x.data<double>()[dim == 0 ? i * columns + slice : slice * columns + i];
}

}  // namespace

TEST_CASE("rounding with a sum: each entry becomes a neighbouring number, and the sum is off by half a step at most") {
  NoGrad no_grad;
  for (const char* name : {"f32", "bf16", "f16"})
    for (int dim : {0, 1}) {
      INFO(name << ' ' << dim);
      const NumberFormat format = *format_named(name);
      const Steps steps(format);
      const Tensor x = centred(dim == 0 ? Dims{3000, 4} : Dims{4, 3000}, dim, format);
      const Tensor y = rounded_with_sum(x, dim, format, "x"), wide = y.to(DType::f64),
                   nearest = rounded(x, format, "x").to(DType::f64);
      CHECK(y.dtype() == format.dtype);
      CHECK(::same_bytes(rounded(wide, format, "y").to(DType::f64), wide));
      double worst = 0, unmended = 0;
      for (int64_t slice = 0; slice < 4; ++slice) {
        double off = 0, off_nearest = 0, largest = 0;
        for (int64_t i = 0; i < 3000; ++i) {
          const double exact = at(x, dim, slice, i), found = at(wide, dim, slice, i);
          if (!(std::abs(found - exact) < steps.at(exact))) FAIL(found << " for " << exact);
          off += found - exact, off_nearest += at(nearest, dim, slice, i) - exact;
          largest = std::max(largest, std::abs(exact));
        }
        worst = std::max(worst, std::abs(off) / steps.at(largest));
        unmended = std::max(unmended, std::abs(off_nearest) / steps.at(largest));
      }
      CHECK(worst <= 0.5 + 1e-6);
      CHECK(unmended > 20);  // with rounding to the nearest, the error of the sum grows with the width
      const int threads = num_threads();
      set_num_threads(1);
      CHECK(::same_bytes(rounded_with_sum(x, dim, format, "x"), y));
      set_num_threads(threads);
    }
}

TEST_CASE("rounding with a sum: f64 stays, nothing goes beyond the largest number, and what does is refused") {
  const Tensor x = full({1, 9}, 65510, {DType::f64});
  const NumberFormat f16 = *format_named("f16");
  CHECK(::same_bytes(rounded_with_sum(x, 1, DType::f64, "x"), x));
  CHECK(rounded_with_sum(x, 1, f16, "x").to_vector<float>() == std::vector<float>(9, 65504));
  CHECK_THROWS_WITH(rounded_with_sum(x * 2, 1, f16, "x"), Contains("'x' holds 131020, which does not fit f16"));
}

TEST_CASE("rounding with a sum: in crms_norm every writer has it") {
  NoGrad no_grad;
  const TensorMap state = gpt2(300, 20);
  const Conversion c = convert(state, gpt2_plan(state, 300), Form::crms_norm, DType::bf16);
  for (const auto& [name, dim] :
       {std::pair("wte.weight", 1), {"h.0.mlp.c_proj.weight", 1}, {"h.0.mlp.c_proj.bias", 0}}) {
    INFO(name);
    const Tensor &exact = c.exact.at(name), off = c.state.at(name).to(DType::f64) - exact;
    CHECK(largest_entry(sum(off, {dim})) <= Steps(DType::bf16).at(largest_entry(exact)) / 2 * (1 + 1e-6));
  }
}
