// Attention with a u8 mask, such as comparisons give.
#include "autograd/fused/attention.h"
#include "tests/support/catch.h"
#include "tests/support/ops.h"

using namespace isonorm;

TEST_CASE("attention hides keys whose u8 mask is 0: the result is attention over the other keys") {
  Generator g{7, 0};
  const TensorOptions f64{DType::f64};
  const Tensor q = randn({2, 2, 3, 4}, f64, g), k = randn({2, 2, 5, 4}, f64, g), v = randn({2, 2, 5, 4}, f64, g);
  const Tensor seen = reshape(arange(5) < unsqueeze(tensor({2, 5}), 1), {2, 1, 1, 5});
  const Tensor out = scaled_dot_product_attention(q, k, v, {.mask = seen});
  for (int64_t b : {0, 1}) {
    const int64_t keys = b == 0 ? 2 : 5;
    const Tensor alone = scaled_dot_product_attention(narrow(q, 0, b, 1), narrow(narrow(k, 0, b, 1), 2, 0, keys),
                                                      narrow(narrow(v, 0, b, 1), 2, 0, keys));
    CHECK(allclose(narrow(out, 0, b, 1), alone, 0, 1e-14));
  }
  const Tensor packed = randn({2, 5, 24}, f64, g);
  const Tensor hidden = where(seen, 0, full({}, -HUGE_VAL, f64));
  for (int64_t kv_heads : {0, 2})
    CHECK(equal(packed_attention(packed, kv_heads ? 4 : 2, {.mask = seen}, kv_heads),
                packed_attention(packed, kv_heads ? 4 : 2, {.mask = hidden}, kv_heads)));
  CHECK(equal(reference::scaled_dot_product_attention(q, k, v, {.mask = seen}),
              reference::scaled_dot_product_attention(q, k, v, {.mask = hidden})));
}
