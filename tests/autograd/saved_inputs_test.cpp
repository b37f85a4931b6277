// A rule may only name inputs and outputs that its op has. If it is differentiated, it may keep no other floating
// tensor.
#include "core/view.h"
#include "tests/autograd/room.h"

namespace {

constexpr BackwardOptions kGraph{.create_graph = true};

// x^2 f, whose rule keeps f; by default f is neither input nor output.
Tensor scaled(const Tensor& x, const Tensor& f, bool is_input = false) {
  Tensor y = detach(x) * detach(x) * detach(f);
  auto* const n = is_input ? track("scaled", {&y}, {&x, &f}) : track("scaled", {&y}, {&x});
  n->backward = differentiable([x = save(x), f = save(f)](Flow& g) { g.give(0, g.out() * (2.0 * Tensor(x) * f)); });
  return y;
}

// A number y = 2 x whose rule is `rule`.
Tensor twice(const Tensor& x, void (*rule)(Flow&)) {
  Tensor y = detach(x) * 2.0;
  track("twice", {&y}, {&x})->backward = rule;
  return y;
}

}  // namespace

TEST_CASE("a rule of a second derivative that keeps a tensor computed under NoGrad is refused by the op's name") {
  const Tensor x = require_grad(tensor({2.0}));
  Tensor square;
  {
    const NoGrad no_grad;
    square = x * x;
  }
  // x^4 as x^2 `square`: its second derivative is 12 x^2 = 48, and the share of `square` would be missing.
  for (const Tensor& kept : {square, square * 1.0, detach(x) * detach(x), detach(square), detach(x)}) {
    CHECK(grad(scaled(x, kept), {x})[0].item() == 4 * kept.item());
    CHECK_THROWS_WITH(grad(scaled(x, kept), {x}, {}, kGraph),
                      Contains("scaled: its rule keeps a tensor of shape [1] that is no input or output of the op") &&
                          Contains("list a constant among the inputs"));
  }
  Tensor cube = detach(x) * detach(x) * detach(x);
  const Saved early = save(cube);  // before track(), so it is not known as the output
  track("cube", {&cube}, {&x})->backward =
      differentiable([early, x = save(x)](Flow& g) { g.give(0, g.out() * (3.0 * Tensor(early) / x)); });
  CHECK_THROWS_WITH(grad(cube, {x}, {}, kGraph), Contains("cube: its rule keeps") && Contains("after track()"));
}

TEST_CASE(
    "a rule of a second derivative that keeps a view of an input is refused, and is told to take the view itself") {
  const Tensor x = require_grad(tensor({2.0, 3.0}));
  const auto squared = [&x](bool views_itself, const Tensor& kept) {
    Tensor y = detach(x) * detach(x);
    track("squared", {&y}, {&x})->backward = differentiable([views_itself, kept = save(kept)](Flow& g) {
      const Tensor row = views_itself ? reshape(Tensor(kept), {1, 2}) : Tensor(kept);
      g.give(0, g.out() * reshape(row, {2}) * 2.0);
    });
    return sum(y);
  };
  for (const Tensor& view : {reshape(x, {1, 2}), detached::reshape(x, {1, 2})})
    CHECK_THROWS_WITH(grad(squared(false, view), {x}, {}, kGraph),
                      Contains("squared: its rule keeps a tensor of shape [1, 2]") &&
                          Contains("(a view of one is neither)") && Contains("take the view in the rule"));
  const Tensor first = grad(squared(true, x), {x}, {}, kGraph)[0];
  CHECK(grad(sum(first), {x})[0].to_vector<double>() == std::vector{2.0, 2.0});
}

TEST_CASE("a rule of a second derivative that keeps the result of an op that is gone is refused") {
  const Tensor x = require_grad(tensor({2.0}));
  Tensor y;
  {
    const NoGrad no_grad;
    y = exp(x) * x;
  }
  // The node of exp() is freed, and the next op's node may get its address.
  const Saved power = save(exp(x));
  track("gone", {&y}, {&x})->backward =
      differentiable([power, x = save(x)](Flow& g) { g.give(0, g.out() * (Tensor(power) * (1.0 + Tensor(x)))); });
  CHECK_THROWS_WITH(grad(y, {x}, {}, kGraph), Contains("gone: its rule keeps"));
}

TEST_CASE("a rule that is differentiated keeps constants as inputs, as data() and as integers") {
  const Tensor x = require_grad(tensor({2.0}));
  Tensor square;
  {
    const NoGrad no_grad;
    square = x * x;
  }
  const auto second = [&](const Tensor& y) { return grad(grad(y, {x}, {}, kGraph)[0], {x})[0].item(); };
  CHECK(second(scaled(x, square, true)) == 8);     // 2 f, as for an op x^2 f
  CHECK(second(x * x * square) == 8);              // an op of the library
  CHECK(second(scaled(x, detach(x), true)) == 4);  // an input that shares another input's storage

  Tensor y = detach(x) * detach(x) * square;
  track("own", {&y}, {&x})->backward =
      differentiable([x = save(x), f = save(square)](Flow& g) { g.give(0, g.out() * (2.0 * Tensor(x) * f.data())); });
  CHECK(second(y) == 8);

  Tensor z = detach(x) * detach(x) * 3.0;
  track("own", {&z}, {&x})->backward = differentiable(
      [x = save(x), factor = save(tensor({3}))](Flow& g) { g.give(0, g.out() * (2.0 * Tensor(x) * Tensor(factor))); });
  CHECK(second(z) == 6);
}

TEST_CASE("a constant input that is rounded for the backward is known as an input") {
  const SaveActivations rounded(DType::bf16);
  const Tensor rows = full({64, 32}, 1.5f), w = require_grad(full({1, 32}, 0.5f));  // 1.5 is exact in bf16
  const Tensor y = linear(rows, w);                                                 // 24 each
  const Tensor slope = grad(sum(y * y * y), {w}, {}, kGraph)[0];                    // 64 times 3 24^2 1.5
  CHECK(slope.to_vector<float>()[0] == 64 * 3 * 576 * 1.5f);
  CHECK(grad(sum(slope), {w})[0].to_vector<float>()[0] == 64 * 6 * 24 * 1.5f * (32 * 1.5f));
}

TEST_CASE("a rule that names an input or output that its op does not have is refused with both numbers") {
  const Tensor x = require_grad(tensor({1.0, 2.0}));
  const auto line = [&](void (*rule)(Flow&)) -> std::string {
    try {
      sum(twice(x, rule)).backward();
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  };
  CHECK(line([](Flow& g) { g.give(0, g.out() * 2.0); }) == "none");
  CHECK(line([](Flow& g) { g.give(1, g.out()); }) == "twice: its rule names input 1, inputs are 0 to 0");
  CHECK(line([](Flow& g) { g.give(-2, g.out()); }) == "twice: its rule names input -2, inputs are 0 to 0");
  CHECK(line([](Flow& g) { g.wants(3); }) == "twice: its rule names input 3, inputs are 0 to 0");
  CHECK(line([](Flow& g) { g.dtype(2); }) == "twice: its rule names input 2, inputs are 0 to 0");
  CHECK(line([](Flow& g) { g.attached(1); }) == "twice: its rule names input 1, inputs are 0 to 0");
  CHECK(line([](Flow& g) { g.attached(1, g.out()); }) == "twice: its rule names input 1, inputs are 0 to 0");
  for (const auto rule : {+[](Flow& g) { g.out(1); }, +[](Flow& g) { g.take(1); }, +[](Flow& g) { g.has_out(1); },
                          +[](Flow& g) { g.reuse(1); }})
    CHECK(line(rule) == "twice: its rule names output 1, outputs are 0 to 0");

  const Tensor constant = tensor({1.0, 2.0}), y = detach(x) * constant;
  track("scale", {&y}, {&x, &constant})->backward = [](Flow& g) { g.dtype(1); };
  CHECK_THROWS_WITH(sum(y).backward(), "scale: its rule asks for the dtype of input 1, which takes no gradient");
}

TEST_CASE("an op without outputs, or with an undefined one, is refused by its name") {
  const Tensor x = require_grad(tensor({1.0})), y = detach(x), none;
  CHECK_THROWS_WITH(track("own", {}, {&x}), "own: track() got no output");
  CHECK_THROWS_WITH(track("own", {&y, &none}, {&x}), "own: an output of track() is undefined");
}

TEST_CASE("an op without a rule says so, and not that its graph was released") {
  const Tensor x = require_grad(tensor({1.0, 2.0})), y = detach(x) * 2.0;
  track("own", {&y}, {&x});
  CHECK_THROWS_WITH(sum(y).backward(), "own: it has no rule: set `backward` of the node that track() returned");
  const Tensor z = sum(x * 2.0);
  z.backward();
  CHECK_THROWS_WITH(z.backward(), Contains("was already used by a backward"));
}
