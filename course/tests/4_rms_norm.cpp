// Visible tests of lab 4.
#include "labs/4_rms_norm.h"

#include "support/tests.h"

namespace course {
namespace {

const Test kForward("forward", 1, [] {
  const Tensor x = random({4, 6}, 1);
  expect_close("y", rms_norm_op(x), rms_norm(x));
});

const Test kRecorded("it is one op, and its gradient is right", 3, [] {
  const Tensor x = random({4, 6}, 1).require_grad(), y = rms_norm_op(x);
  check(y.requires_grad(), "the result has no graph");
  check(std::string(y.impl().node->name) == "rms_norm_op", "the last op is ", y.impl().node->name);
  const GradcheckResult r = gradcheck([](const std::vector<Tensor>& in) { return rms_norm_op(in[0]); }, {x.detach()});
  check(r.ok, r.message());
});

const Test kPartial("half of the entries", 1, [] {
  const Tensor x = random({3, 8}, 2);
  expect_close("y", partial_rms_norm(x, 0.5), rms_norm(x, {.p = 0.5}));
});

const Test kLayer("LayerNorm", 1, [] {
  const Tensor x = random({3, 8}, 3) + 2.0;
  expect_close("y", layer_norm_by_rms(x), layer_norm(x));
});

}  // namespace
}  // namespace course
