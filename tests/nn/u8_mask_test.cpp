// A u8 mask, the result of a comparison, in a recurrent layer.
#include "autograd/ops/shape.h"
#include "nn/recurrent/recurrent.h"
#include "tests/support/catch.h"
#include "tests/support/ops.h"

using namespace isonorm;

TEST_CASE("a padded LSTM with a mask of u8 has the results of each sequence alone, whatever is padded") {
  nn::Lstm lstm({.inputs = 2, .hidden = 3, .bidirectional = true});
  Generator g{5, 0};
  const std::vector<Tensor> sequences = {randn({2, 2}, {}, g), randn({4, 2}, {}, g)};
  const Tensor mask = arange(4) < unsqueeze(tensor({2, 4}), 1);
  CHECK(mask.dtype() == DType::u8);
  const nn::RecurrentResult padded = lstm(pad_sequence(sequences, true, NAN), {.mask = mask});
  for (int64_t i : {0, 1}) {
    const nn::RecurrentResult alone = lstm(unsqueeze(sequences[i], 0));
    for (size_t part : {0, 1})
      CHECK(allclose(select(padded.state[part], 1, i), select(alone.state[part], 1, 0), 0, 1e-6));
  }
  CHECK_THROWS_WITH(lstm(ones({1, 2, 2}), {.mask = ones({1, 2}, {DType::i64})}),
                    Catch::Matchers::Contains("the mask is i64, expected u8 or the rows' f32"));
}
