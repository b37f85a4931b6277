// Several threads that differentiate through the same leaves, and two passes that meet in one graph.
#include <atomic>
#include <latch>
#include <thread>

#include "core/random.h"
#include "core/system/parallel.h"
#include "tests/autograd/room.h"

namespace {

constexpr int kThreads = 4;

// Calls work(thread index) in kThreads threads that begin together. Returns the message of the first error, or "".
std::string in_threads(const std::function<void(int)>& work) {
  std::latch begin(kThreads);
  std::string errors[kThreads];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      set_num_threads(1);
      begin.arrive_and_wait();
      try {
        work(t);
      } catch (const std::exception& e) {
        errors[t] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors)
    if (!e.empty()) return e;
  return "";
}

// tanh(tanh(x A) B) C with leaves of one model.
struct Mlp {
  std::vector<Tensor> leaves;
  Mlp() {
    for (int i = 0; i < 3; ++i) leaves.push_back(require_grad(randn({8, 8})));
  }
  Tensor operator()(const Tensor& x) const {
    return sum(square(matmul(tanh(matmul(tanh(matmul(x, leaves[0])), leaves[1])), leaves[2])));
  }
};

std::vector<float> all(const std::vector<Tensor>& tensors) {
  std::vector<float> values;
  for (const Tensor& t : tensors)
    for (const float v : t.to_vector<float>()) values.push_back(v);
  return values;
}

}  // namespace

TEST_CASE("threads: grad() of several threads through a model has the bits of a single thread") {
  manual_seed(1);
  const Mlp model;
  std::vector<Tensor> inputs;
  std::vector<std::vector<float>> alone;
  for (int t = 0; t < kThreads; ++t) {
    inputs.push_back(randn({4, 8}));
    alone.push_back(all(grad(std::vector<Tensor>{model(inputs[t])}, model.leaves)));
  }
  std::atomic<int> others = 0;
  const std::string error = in_threads([&](int t) {
    for (int i = 0; i < 200; ++i) others += all(grad(std::vector<Tensor>{model(inputs[t])}, model.leaves)) != alone[t];
  });
  CHECK(error.empty());
  CHECK(others == 0);
  for (const Tensor& w : model.leaves) CHECK_FALSE(w.grad().defined());
}

TEST_CASE("threads: backward() of several threads adds every gradient of a shared leaf") {
  const Tensor w = require_grad(tensor({1.0, 2.0}));
  const std::string error = in_threads([&](int t) {
    for (int i = 0; i < 500; ++i) backward(sum(w * (t + 1.0)));  // whole numbers: exact in any order
  });
  CHECK(error.empty());
  CHECK(w.grad().to_vector<double>() == std::vector<double>{5000, 5000});
}

TEST_CASE("threads: every pass tells its own listener, once, when its share of a shared leaf is added") {
  const Tensor w = require_grad(tensor({1.0}));
  std::atomic<int> told = 0;
  const std::string error = in_threads([&](int) {
    for (int i = 0; i < 200; ++i) {
      const GradientListener listener{{w}, [&](size_t) { ++told; }};
      backward(sum(exp(w * 0.0) * w), {}, {.listener = &listener});  // d/dw = 1 at w = 1
    }
  });
  CHECK(error.empty());
  CHECK(told == kThreads * 200);
  CHECK(w.grad().item() == kThreads * 200);
}

TEST_CASE("threads: a leaf of another thread is differentiated once after a part that runs again") {
  for (int i = 0; i < 100; ++i) exp(require_grad(tensor({1.0})));  // gives this thread's ops large numbers
  const Tensor w = require_grad(tensor({3.0}));
  std::vector<double> seen;
  on_grad(w, [&](const Tensor& g) { return seen.push_back(g.item()), g; });
  std::vector<double> gradients;
  std::thread([&] {  // its ops begin at 1
    const Tensor part = checkpoint([&](const Tensor& x) { return x * w; }, tensor({2.0}));
    gradients.push_back(grad(sum(part + w * 5.0), {w})[0].item());
  })
      .join();
  CHECK(gradients == std::vector<double>{7});
  CHECK(seen == std::vector<double>{7});
}

TEST_CASE("threads: a pass that meets another one in a graph throws, and does not disturb it") {
  const std::string refused = "another backward is running through the graph of 'exp'; run one at a time";
  const bool of_another_thread = GENERATE(false, true);
  const Tensor x = require_grad(tensor({0.0}));
  const Tensor y = exp(x), z = y * 2.0;
  std::string message;
  const HookHandle handle = on_grad(y, [&](const Tensor& g) {
    const auto second = [&] {
      try {
        backward(z, {}, {.retain_graph = true});
      } catch (const Error& e) {
        message = e.what();
      }
    };
    of_another_thread ? std::thread(second).join() : second();
    return g;
  });
  backward(z, {}, {.retain_graph = true});
  CHECK_THAT(message, Catch::Contains(refused));
  CHECK(x.grad().item() == 2);
  HookHandle(handle).remove();
  backward(z);  // the graph is free again
  CHECK(x.grad().item() == 4);
}

TEST_CASE("on_grad: a handle removes its hook") {
  const Tensor x = require_grad(tensor({1.0}));
  const HookHandle twice = on_grad(x, [](const Tensor& g) { return g * 2.0; });
  HookHandle thrice = on_grad(x, [](const Tensor& g) { return g * 3.0; });
  const auto gradient = [&] { return grad(sum(x * 1.0), {x})[0].item(); };
  CHECK(gradient() == 6);
  HookHandle copy = twice;
  copy.remove();
  CHECK(gradient() == 3);
  copy.remove(), HookHandle(twice).remove(), HookHandle().remove();  // nothing left to do
  CHECK(gradient() == 3);
  thrice.remove();
  CHECK(gradient() == 1);
}

TEST_CASE("on_grad: a hook may remove itself, and a later one, while it runs") {
  const Tensor x = require_grad(tensor({1.0}));
  HookHandle self, next;
  const auto kept = std::make_shared<int>(0);
  self = on_grad(x, [&, kept](const Tensor& g) {
    self.remove(), next.remove();
    ++*kept;  // the hook is still there
    return g * 2.0;
  });
  next = on_grad(x, [](const Tensor& g) { return g * 3.0; });
  const auto gradient = [&] { return grad(sum(x * 1.0), {x})[0].item(); };
  CHECK(gradient() == 2);
  CHECK(kept.use_count() == 1);
  CHECK(gradient() == 1);
}

TEST_CASE("on_grad: a handle may live longer than the tensor; an empty hook is refused") {
  HookHandle handle;
  {
    const Tensor x = require_grad(tensor({1.0}));
    handle = on_grad(x, [](const Tensor& g) { return g; });
    CHECK_THROWS_WITH(on_grad(x, {}), Catch::Contains("on_grad: the hook is empty"));
  }
  handle.remove();
}
