// Hidden tests of lab 3.
#include "labs/3_layer_norm.h"

#include "hidden/support/candidates.h"
#include "support/tests.h"

namespace course {
namespace {

const Test kShapes(
    "forward and backward of other shapes", 2,
    [] {
      for (const Candidate& right : right_layer_norms())
        for (const Dims& shape : {Dims{1, 1}, Dims{1, 5}, Dims{9, 2}, Dims{2, 3, 17}, Dims{6, 64}}) {
          const Tensor x = random(shape, 11) + 3.0, dy = random(shape, 12);
          const NormWeights w{random({x.size(-1)}, 13), random({x.size(-1)}, 14), 0.1};
          const NormGradients got = layer_norm_backward(x, w, dy), expected = right.norm.backward(x, w, dy);
          expect_close("y", layer_norm_forward(x, w), right.norm.forward(x, w));
          expect_close("dx", got.x, expected.x);
          expect_close("dgain", got.gain, expected.gain);
          expect_close("dbias", got.bias, expected.bias);
        }
    },
    Seen::hidden);

const Test kLargeMean(
    "a large mean leaves the digits that f64 has", 1,
    [] {
      const Tensor c = round(random({4, 8}, 15) * 8.0), x = c + 0x1p30;  // exact
      const NormWeights w{ones({8}, {.dtype = DType::f64}), zeros({8}, {.dtype = DType::f64}), 1e-5};
      expect_close("y", layer_norm_forward(x, w), layer_norm_forward(c, w));
    },
    Seen::hidden);

// Not hidden: whoever has been marked may see which wrong norms survived.
const Test kWrongNorms("your test rejects wrong norms", 8,
                       [] { return share_rejected(accepts_layer_norm, right_layer_norms(), wrong_layer_norms()); });

}  // namespace
}  // namespace course
