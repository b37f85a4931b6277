// The sizes that a verdict states are true: a planted error of 1.1 times the size is found, in the right tensor. The
// sizes are sharp, too: half of the size is not found everywhere.
#include "autograd/node.h"
#include "tests/right_pairs/pair.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::right_pairs;
using equivalence::Verdict;

namespace {

const Shapes kShapes = {{"w1", {16, 8}},  {"b1", {16}}, {"g1", {16}},    {"t1", {16}},
                        {"w2", {16, 16}}, {"b2", {16}}, {"w3", {4, 16}}, {"b3", {4}}};

// An error in B: of the loss at `call`, or of the gradient of `tensor` there. call 0: always.
struct Planted {
  std::string tensor = {};  // empty: in the loss
  double size = 0;          // added, relative to the loss, or to the largest entry of the gradient
  bool one_entry = false;   // added to the second entry; else the gradient is multiplied by 1 + size
  int call = 0;
};

Tensor wrong_gradient(const Tensor& g, const Planted& error) {
  const NoGrad no_grad;
  if (!error.one_entry) return g * (1 + error.size);
  const Tensor wrong = clone(contiguous(g)), second = select(reshape(wrong, {-1}), 0, 1);
  fill(second, second.item() + error.size * amax(abs(g)).item());
  return wrong;
}

// x, with a gradient that has the error.
Tensor with_error(const Tensor& x, const Planted& error) {
  const Tensor y = detach(x) * 1.0;
  if (auto* node = track("with_error", {&y}, {&x}))
    node->backward = [error](Flow& flow) { flow.give(0, wrong_gradient(flow.out(), error)); };
  return y;
}

// The first model, or the second with an error.
Make model(bool composed, const Planted& error = {}) {
  return [=](const Draw& draw) {
    const auto calls = std::make_shared<int>(0);
    const auto now = [=] { return error.call == 0 || error.call == *calls; };
    const Make made = net(kShapes, [=](Net& m, const Tensor& x) {
      const auto p = [&](const char* name) {
        return error.tensor == name && now() ? with_error(m[name], error) : m[name];
      };
      const Tensor h = gelu(linear(x, p("w1"), p("b1"))), gain = p("g1"), bias = p("t1");
      const Tensor normed = composed ? composed_layer_norm(h, gain, bias) : layer_norm(h, gain, bias);
      return linear(h + linear(normed, p("w2"), p("b2")), p("w3"), p("b3"));
    });
    return with_loss(made, [=](Net& m, const Examples& batch) {
      ++*calls;
      const Tensor loss = cross_entropy(m(batch.inputs), batch.targets);
      return error.tensor.empty() && now() ? loss + detach(loss) * error.size : loss;
    })(draw);
  };
}

Comparison compared(const Planted& error, DType dtype, const std::optional<MakeOptimizer>& optimizer) {
  const RightPair pair = {.name = "planted",
                          .first = model(false),
                          .second = model(true, error),
                          .data = rows({12, 8}, 4),
                          .loss = loss_of_net,
                          .optimizer = optimizer};
  return compare(pair, {dtype, 7});
}

// Errors of the same size in each tensor, up and down.
struct Found {
  int planted = 0, seen = 0, in_the_right_tensor = 0;
};
Found plant_in_each(Planted error, DType dtype, const std::optional<MakeOptimizer>& optimizer) {
  Found found;
  for (const auto& [name, shape] : kShapes)
    for (const double sign : {1.0, -1.0}) {
      Planted one = error;
      one.tensor = name, one.size *= sign;
      const Comparison c = compared(one, dtype, optimizer);
      const bool different = c.verdict == Verdict::different;
      ++found.planted, found.seen += different;
      const bool here = different && c.first_difference && c.first_difference->place.tensor == name;
      found.in_the_right_tensor += here && (error.call == 0 || c.first_difference->step == error.call);
    }
  return found;
}

}  // namespace

TEST_CASE("sizes: 1.1 times the stated gradient factor is found in its tensor, and half of it is not") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Comparison right = compared({}, dtype, {});
    INFO(name_of(dtype) << ": " << right.sentence());
    REQUIRE(right.equivalent());
    const double size = right.detectable;
    const Found found = plant_in_each({.size = 1.1 * size}, dtype, {});
    CHECK(found.in_the_right_tensor == found.planted);
    CHECK(plant_in_each({.size = 0.5 * size}, dtype, {}).seen <= found.planted / 4);
    for (const double sign : {1.0, -1.0}) {
      CHECK(compared({.size = sign * 1.1 * size}, dtype, {}).verdict == Verdict::different);
      CHECK(compared({.size = sign * 0.2 * size}, dtype, {}).equivalent());
    }
  }
}

TEST_CASE("sizes: on a trajectory 1.1 times the stated difference is found at its step, half of it is not") {
  for (const DType dtype : {DType::f64, DType::f32})
    for (const int step : {2, 10, 20}) {
      const Comparison right = compared({}, dtype, adamw(1e-2));
      INFO(name_of(dtype) << ", step " << step << ": " << right.sentence());
      REQUIRE(right.equivalent());
      const equivalence::Magnitudes size = right.horizon.detectable;
      const Planted entry = {.size = 1.1 * size.gradient, .one_entry = true, .call = step};
      const Found found = plant_in_each(entry, dtype, adamw(1e-2));
      CHECK(found.in_the_right_tensor == found.planted);
      CHECK(compared({.size = 1.1 * size.loss, .call = step}, dtype, adamw(1e-2)).verdict == Verdict::different);
      if (step < 20) continue;  // the size is stated for the horizon; bounds are tighter before
      const Planted half = {.size = 0.5 * size.gradient, .one_entry = true, .call = step};
      CHECK(plant_in_each(half, dtype, adamw(1e-2)).seen <= 1);
      CHECK(compared({.size = 0.5 * size.loss, .call = step}, dtype, adamw(1e-2)).equivalent());
    }
}
