// Tensors on several devices: transfers between them, and operations that refuse to mix them.
#include <sstream>

#include "autograd/node.h"
#include "core/kernels/attention.h"
#include "core/kernels/copy.h"
#include "core/kernels/optimizer.h"
#include "core/print.h"
#include "io/data/loader.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/ema.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::kCuda, test::kCuda1;

namespace {

constexpr Device kPlaces[] = {kCpu, kCuda, kCuda1};

}  // namespace

TEST_CASE("to() and copy_into() carry every dtype between all devices, views and broadcasts too") {
  const Tensor source = reshape(arange(24), {2, 3, 4});
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8})
    for (Device from : kPlaces)
      for (Device there : kPlaces) {
        INFO(text(dtype, " from ", from, " to ", there));
        const Tensor x = to(source.to(dtype), from), y = to(x, there);
        CHECK(y.device() == there);
        CHECK(same_bytes(y, source.to(dtype)));
        CHECK((from == there) == (y.impl().storage == x.impl().storage));
        const Tensor turned = to(transpose(x, 0, 2), there);
        CHECK(same_bytes(turned, transpose(source.to(dtype), 0, 2)));
        // Into a part of a tensor with another dtype, broadcast along the first dimension.
        const Tensor wide = zeros({5, 2, 6, 4}, {DType::f32, there});
        copy_into(slice(wide, 2, 1, 6, 2), x);
        CHECK(same_bytes(to(wide, kCpu), [&] {
          const Tensor expected = zeros({5, 2, 6, 4});
          copy_into(slice(expected, 2, 1, 6, 2), source.to(dtype));
          return expected;
        }()));
      }
  for (Device there : kPlaces) CHECK(to(zeros({0, 3}, {DType::f32, kCuda}), there).shape() == Dims{0, 3});
}

TEST_CASE("item() and printing read a device") {
  const Tensor x = to(tensor({1.5, -2.0}), kCuda1);
  CHECK(select(x, 0, 1).item() == -2);
  std::ostringstream s;
  s << x;
  CHECK(s.str() == "[ 1.5, -2. ]  f64 [2] on cuda:1");
}

TEST_CASE("gradients return to the device that a tensor came from") {
  const Tensor x = require_grad(tensor({1.0, 2.0, 3.0}));
  const Tensor w = require_grad(to(tensor({2.0, 3.0, 4.0}), kCuda));
  const Tensor loss = sum(to(to(x, kCuda) * w, kCuda1));
  CHECK(loss.device() == kCuda1);
  backward(loss);
  CHECK(x.grad().device() == kCpu);
  CHECK(w.grad().device() == kCuda);
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 3, 4});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{1, 2, 3});
}

TEST_CASE("a gradient refuses a tensor that a transfer has overwritten") {
  const Tensor x = require_grad(to(tensor({1.0, 2.0}), kCuda)), y = square(x);
  copy_into(detach(x), tensor({3.0, 4.0}));
  CHECK(x.to_vector<double>() == std::vector<double>{3, 4});
  CHECK_THROWS_WITH(backward(sum(y)), Contains("square: a tensor of shape [2]"));
}

TEST_CASE("cuda:1 is a device of its own; one that is not there is refused") {
  const Tensor a = full({3}, 2, {DType::f64, kCuda1}), b = to(tensor({1.0, 2.0, 3.0}), kCuda1);
  CHECK((a * b).device() == kCuda1);
  CHECK((a * b).to_vector<double>() == std::vector<double>{2, 4, 6});
  CHECK(&allocator_of(kCuda) != &allocator_of(kCuda1));
  CHECK_THROWS_WITH(mul(to(b, kCuda), b), "mul: cuda:0 and cuda:1");
  for (int index : {2, -1})
    CHECK_THROWS_WITH(zeros({2}, {DType::f32, {DeviceKind::cuda, index}}),
                      text("allocate: no device cuda:", index, ", the GPUs are cuda:0 to cuda:1"));
}

TEST_CASE("a slot refuses two devices in whatever holds its tensors") {
  const Tensor here = ones({2, 2}), a = ones({2, 2}, {DType::f32, kCuda});
  CHECK_THROWS_WITH(kernels::copy(here, a), "copy: a tensor of shape [2, 2] lies on cuda:0, the others on cpu");
  CHECK_THROWS_WITH(kernels::copy(a, here), "copy: a tensor of shape [2, 2] lies on cpu, the others on cuda:0");
  const Tensor list[] = {here, a};
  CHECK_THROWS_WITH(kernels::scale.on(kCpu, list, 2), Contains("scale: ") && Contains("lies on cuda:0"));
  const kernels::Update updates[] = {{.gradient = a, .parameter = here, .state = {}, .rule = rules::Sgd{0.1}}};
  CHECK_THROWS_WITH(kernels::update.on(kCpu, updates), Contains("update: ") && Contains("lies on cuda:0"));
  const kernels::AttentionInputs in{a, a, a, here};
  CHECK_THROWS_WITH(kernels::attention_backward.on(kCuda, {1, false}, {a, a, a}, {in, a, {a, a}, a}),
                    Contains("attention_backward: ") && Contains("lies on cpu"));
}

TEST_CASE("optimizers, limits and averages refuse parameters on two devices") {
  const Tensor a = require_grad(ones({2}, {DType::f32, kCuda})), b = require_grad(ones({2}));
  set_grad(a, ones({2}, {DType::f32, kCuda}));
  set_grad(b, ones({2}));
  optim::AdamW opt({a, b});
  CHECK_THROWS_WITH(opt.step(), "adamw: parameters lie on cuda:0 and on cpu");
  CHECK_THROWS_WITH(optim::clip_grad_norm({a, b}, 1), "clip: gradients lie on cuda:0 and on cpu");
  CHECK_THROWS_WITH(optim::Ema({a, b}), "ema: parameters lie on cuda:0 and on cpu");
}

TEST_CASE("gradients of another device are refused on entry") {
  const Tensor x = require_grad(ones({3}, {DType::f32, kCuda})), y = x * 2.0;
  CHECK_THROWS_WITH(backward(y, ones({3})), "backward: the cotangent lies on cpu, the tensor on cuda:0");
  CHECK_THROWS_WITH(set_grad(x, ones({3})), "set_grad: the gradient lies on cpu, the tensor on cuda:0");
  on_grad(y, [](const Tensor& g) { return to(g, kCuda1); });
  CHECK_THROWS_WITH(backward(sum(y)), "on_grad: the hook returned a tensor on cuda:1, expected cuda:0");
  CHECK_FALSE(x.grad().defined());

  // A user-defined backward.
  Tensor z = detach(x);
  track("own", {&z}, {&x})->backward = [](Flow& g) { g.give(0, to(g.out(), kCpu)); };
  CHECK_THROWS_WITH(backward(sum(z)), "own: backward gave input 0 a gradient on cpu, the input lies on cuda:0");
}

TEST_CASE("a transfer is a line of a profile") {
  const Tensor x = ones({100}, {DType::f32, kCuda});
  profile::start();
  x.to_vector<double>();
  const profile::Profile p = profile::stop();
  int transfers = 0;
  for (const profile::Call& c : p.calls)
    if (std::string(c.kernel) == "transfer") {
      ++transfers;
      CHECK(c.bytes == 400);
    }
  CHECK(transfers == 1);
}

TEST_CASE("a set of images on a device is refused") {
  const data::LabelledImages set{zeros({6, 4, 4}, {DType::u8, kCuda}), zeros({6}, {DType::i64})};
  const int64_t rows[] = {1, 4};
  CHECK_THROWS_WITH(data::gather_batch(set, rows), "labelled images: the set lies on cuda:0 and cpu, expected the CPU");
}
