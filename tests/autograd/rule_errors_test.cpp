// An error inside the rule of an op names the op, whoever raises it: an op that the rule calls, AnomalyMode, a saved
// tensor.
#include "distributed/group.h"
#include "tests/autograd/room.h"

using test::thrown;

namespace {

// x as the result of a user's op with this rule.
Tensor own_op(const Tensor& x, std::function<void(Flow&)> rule) {
  const Tensor y = detach(x) * 1.0;
  if (auto* n = track("my_op", {&y}, {&x})) n->backward = [rule](Flow& g) { rule(g); };
  return y;
}

}  // namespace

TEST_CASE("rule errors: anomaly mode names the custom op whose rule computes the first NaN") {
  const Tensor x = require_grad(tensor({1.0, 2.0}));
  const AnomalyMode guard;
  const auto wrong = [](Flow& g) { g.give(0, log(g.out() - 2.0)); };
  CHECK(thrown([&] { sum(own_op(x, wrong)).backward(); }) ==
        "my_op: log: forward produced nan at element 0 of shape [2]");
  const auto in_block = [&] {
    const Scope scope("block");
    return own_op(x, wrong);
  };
  const Tensor y = in_block();
  CHECK(thrown([&] { sum(y).backward(); }) == "block: my_op: log: forward produced nan at element 0 of shape [2]");
  CHECK(thrown([&] { sum(own_op(x, [](Flow& g) { g.give(0, full({2}, NAN, {DType::f64})); })).backward(); }) ==
        "my_op: backward produced nan at element 0 of shape [2]");
}

TEST_CASE("rule errors: an error of a rule's calls names the op, and keeps its kind and class") {
  const Tensor x = require_grad(tensor({1.0, 2.0}));
  CHECK(thrown([&] { sum(own_op(x, [](Flow& g) { g.give(0, g.out() + ones({3}, {DType::f64})); })).backward(); }) ==
        "my_op: add: shapes [2] and [3] do not broadcast: sizes 2 and 3 differ");
  CHECK(thrown([&] { sum(own_op(x, [](Flow& g) { g.give(0, {}); })).backward(); }) ==
        "my_op: backward gave input 0 an undefined gradient");
  CHECK_THAT(thrown([&] { sum(own_op(x, [](Flow& g) { g.give(0, ones({3}, {DType::f64})); })).backward(); }),
             Contains("my_op: backward: shapes [2] and [3] do not broadcast"));
  CHECK_THAT(thrown([&] { sum(own_op(x, [](Flow& g) { g.give(0, sum(g.out())); })).backward(); }),
             Contains("my_op: backward gave input 0 a gradient of shape [], the input has [2]"));
  const Tensor w = require_grad(tensor({3.0, 4.0})), y = sum(x * w);
  w.mutable_data<double>()[0] = 5;
  CHECK_THAT(thrown([&] { y.backward(); }),
             Contains("mul: a tensor of shape [2] that the gradient needs was changed in place"));
  try {
    sum(own_op(x, [](Flow&) { check_io(false, "the disk is full"); })).backward();
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "my_op: the disk is full");
    CHECK(e.kind() == ErrorKind::io);
  }
  CHECK_THROWS_AS(sum(own_op(x, [](Flow&) { throw distributed::Disagreement("ranks differ", 1); })).backward(),
                  distributed::Disagreement);
}
