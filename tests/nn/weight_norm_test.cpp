// Weight normalization compared with its formula.
#include "nn/weight_norm.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/nearest_bf16.h"
#include "tests/support/random.h"

using namespace isonorm;

TEST_CASE("weight_norm in bf16 is rounded once") {
  const Dims shape{5, 3, 2, 7};
  const Tensor v = test::randn(shape, 1, 0, 1, DType::bf16), gain = test::randn({5}, 2, 2, 1, DType::bf16);
  const std::vector<double> in = v.to_vector<double>(), scale = gain.to_vector<double>(),
                            out = nn::weight_norm(v, gain).to_vector<double>();
  const size_t width = in.size() / scale.size();
  for (size_t row = 0; row < scale.size(); ++row) {
    long double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += in[row * width + i] * in[row * width + i];
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      const long double exact = in[i] * (scale[row] / std::sqrt(squares));
      // The nearest bf16 number or, close to a tie, the one that f32 rounding selects: a sum of 42 squares, a root, a
      // quotient and a product.
      const long double off = std::abs(out[i] - exact), nearest = std::abs(test::nearest_bf16(exact) - exact);
      CHECK(off <= nearest + 8 * std::abs(exact) * 0x1p-24);
    }
  }
}
