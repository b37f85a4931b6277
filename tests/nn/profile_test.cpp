// The profile: the calls that it records, their bytes, operations and module, and the printed tables.
#include "core/system/profile.h"

#include <iterator>

#include "autograd/fused/attention.h"
#include "core/kernels/kernel.h"
#include "core/kernels/matmul.h"
#include "core/kernels/optimizer.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "tests/support/ops.h"

using namespace isonorm;
using profile::Call;

namespace {

struct Pair : nn::Module {
  nn::Linear& first = add("first", nn::Linear(8, 16));
  nn::Linear& second = add("second", nn::Linear(16, 3));
  Tensor forward(const Tensor& x) override { return second(relu(first(x))); }
};

std::vector<Call> of_kernel(const profile::Profile& p, const std::string& kernel) {
  std::vector<Call> found;
  std::copy_if(p.calls.begin(), p.calls.end(), std::back_inserter(found),
               [&](const Call& c) { return c.kernel == kernel; });
  return found;
}

}  // namespace

TEST_CASE("the profile has each product with its module, direction, bytes and operations") {
  Pair net;
  const Tensor x = randn({5, 8});
  profile::start();
  backward(sum(net(x)));
  const profile::Profile p = profile::stop();

  struct Expected {
    const char* kernel;
    const char* module;
    bool backward;
    int64_t m, n, k;  // [m, k] times [k, n]
    int64_t bias;     // size of the bias that is added, or of its gradient
  };
  // The input of `first` needs no gradient.
  for (const Expected& e : {Expected{"matmul", "first", false, 5, 16, 8, 16},
                            {"matmul", "second", false, 5, 3, 16, 3},
                            {"matmul", "second", true, 5, 16, 3, 0},
                            {"weight_gradient", "second", true, 3, 16, 5, 3},
                            {"weight_gradient", "first", true, 16, 8, 5, 16}}) {
    const int64_t flops = 2 * e.m * e.n * e.k, bytes = 4 * (e.m * e.n + e.m * e.k + e.n * e.k + e.bias);
    CAPTURE(e.kernel, e.module, e.backward, flops, bytes);
    const std::vector<Call> products = of_kernel(p, e.kernel);
    CHECK(std::count_if(products.begin(), products.end(), [&](const Call& c) {
            return c.module == e.module && c.backward == e.backward && c.flops == flops && c.bytes == bytes;
          }) == 1);
  }
  CHECK(of_kernel(p, "matmul").size() == 3);
  CHECK(of_kernel(p, "weight_gradient").size() == 2);
  double end = 0, total = 0;
  for (const Call& c : p.calls) {
    CHECK(c.start >= end);  // one thread: calls do not overlap
    end = c.start + c.seconds, total += c.seconds;
  }
  CHECK(total <= p.seconds);
}

TEST_CASE("a tensor that a kernel reads and writes counts twice") {
  const Tensor w = zeros({7, 9}), b = zeros({7}), dy = randn({5, 7}), x = randn({5, 9});
  const std::vector<Tensor> parameters = {randn({7, 9}), randn({7})};
  for (const Tensor& p : parameters) set_grad(require_grad(p), randn(p.shape()));
  optim::AdamW adamw(parameters, {});
  adamw.step();  // creates the state
  profile::start();
  adamw.step();
  kernels::scale.on(kCpu, parameters, 0.5);
  kernels::clamp.on(kCpu, parameters, 1);
  for (bool add : {false, true}) kernels::weight_gradient.on(kCpu, w, b, dy, x, add);
  const profile::Profile p = profile::stop();
  constexpr int64_t n = 63 + 7, read = 4 * (35 + 45);
  CHECK(of_kernel(p, "update").at(0).bytes ==
        28 * n);  // reads gradient, weight, m, v, writes all but the gradient; f32
  CHECK(of_kernel(p, "scale").at(0).bytes == 8 * n);
  CHECK(of_kernel(p, "clamp").at(0).bytes == 8 * n);
  CHECK(of_kernel(p, "weight_gradient").at(0).bytes == read + 4 * n);
  CHECK(of_kernel(p, "weight_gradient").at(1).bytes == read + 8 * n);
}

TEST_CASE("after a backward inside of a backward rule the rest of the rule still counts as backward") {
  const Tensor inner = sum(exp(require_grad(randn({4})))), x = require_grad(randn({4})), y = empty({4});
  fill(y, 1);
  track("outer", {&y}, {&x})->backward = [inner](Flow& flow) {
    backward(inner);
    flow.give(0, sqrt(flow.out()));
  };
  profile::start();
  backward(y, y);
  const profile::Profile p = profile::stop();
  REQUIRE(of_kernel(p, "unary").size() == 1);  // the square root
  CHECK(of_kernel(p, "unary")[0].backward);
}

TEST_CASE("an element that is broadcast counts once, and an undefined tensor not at all") {
  CHECK(tensor_bytes(Tensor()) == 0);
  CHECK(tensor_bytes(empty({3, 4}, {DType::f64})) == 96);
  CHECK(tensor_bytes(as_strided(empty({4}), {1000, 4}, {0, 1}, 0)) == 16);
}

TEST_CASE("the operations of attention are its products' operations, half of them under a causal mask") {
  const Tensor q = require_grad(randn({2, 3, 5, 8})), k = randn({2, 3, 7, 8}), v = randn({2, 3, 7, 8});
  profile::start();
  backward(sum(scaled_dot_product_attention(q, k, v)));
  const Tensor causal = scaled_dot_product_attention(k, k, v, {.causal = true});
  const profile::Profile p = profile::stop();
  REQUIRE(of_kernel(p, "attention_forward").size() == 2);
  CHECK(of_kernel(p, "attention_forward")[0].flops == 2 * (2 * 3 * 5 * 7 * 8) * 2);
  CHECK(of_kernel(p, "attention_forward")[1].flops == 2 * (2 * 3 * 7 * 7 / 2) * (8 + 8));
  REQUIRE(of_kernel(p, "attention_backward").size() == 1);
  CHECK(of_kernel(p, "attention_backward")[0].flops == 2 * (2 * 3 * 5 * 7 * 8) * 5);
}

TEST_CASE("nothing is recorded outside of start and stop") {
  CHECK_FALSE(profile::recording());
  CHECK_THROWS_WITH(profile::stop(), "profile: stop without start");
  profile::start();
  CHECK(profile::stop().calls.empty());
  profile::start();
  const Tensor x = randn({4});
  CHECK_FALSE(profile::stop().calls.empty());
  profile::start();
  const Tensor y = randn({4});
  profile::start();  // discards the earlier calls
  CHECK(profile::stop().calls.empty());
}

TEST_CASE("tables add up calls by kernel and by module, blocks under one name, the longest first") {
  const auto call = [](const char* kernel, const char* module, bool backward, double seconds) {
    return Call{kernel, module, backward, 0, 0, seconds, 2'000'000, kernel[0] == 'm' ? 8'000'000 : 0};
  };
  const profile::Profile p{{call("copy", "", false, 1e-3), call("matmul", "blocks.0.fc1", false, 2e-3),
                            call("matmul", "blocks.11.fc1", true, 4e-3)},
                           10e-3};
  CHECK(profile::tables(p) ==
        "kernel                           calls          ms     share      GB/s   GFLOP/s\n"
        "matmul                               2        6.00    60.0 %       0.7       2.7\n"
        "copy                                 1        1.00    10.0 %       2.0\n"
        "between kernels                               3.00    30.0 %\n"
        "all                                  3       10.00\n"
        "\n"
        "module                           calls  forward ms backward ms     share\n"
        "blocks.*.fc1                         2        2.00        4.00    60.0 %\n"
        "(outside of modules)                 1        1.00        0.00    10.0 %\n");
}

TEST_CASE("a trace that cannot be written names its file") {
  CHECK_THROWS_WITH(profile::write_trace("/nowhere/trace.json", {}), "/nowhere/trace.json: cannot be written");
  CHECK_THROWS_WITH(profile::write_trace("/dev/full", {}), "/dev/full: writing failed");
}
