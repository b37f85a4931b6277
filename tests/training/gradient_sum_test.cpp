// Sums of gradients over ranks that begin during the backward: the same bits as after it, in one order on all ranks.
// Errors reach the caller.
#include "training/steps/gradient_sum.h"

#include <atomic>
#include <condition_variable>
#include <cstring>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/memory/bytes.h"
#include "core/system/stopwatch.h"
#include "distributed/transport.h"
#include "distributed/world.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;
using training::GradientSum;

namespace {

constexpr int kWidth = 16;
constexpr int64_t kLayerBytes = int64_t{kWidth} * kWidth * 4;

using Milliseconds = std::chrono::duration<double, std::milli>;

// The orders of one rank's collectives, and the record of their calls.
struct Wire {
  double ms = 0;      // that half a sum takes
  int fails_at = -1;  // the sum that throws
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;       // sums
  double seconds = 0;  // in sums

  // True if `count` sums begin within 600 s. Only a sum that never begins takes longer.
  bool has_begun(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(600), [&] { return begun >= count; });
  }
};

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Carries the bytes of a group over another one, counts its sums, and takes its time for them.
class CountingTransport : public distributed::Transport {
 public:
  CountingTransport(Group& inner, Wire& wire) : inner_(inner), wire_(wire) {}
  CountingTransport(Group&& own, Wire& wire) : own_(std::move(own)), inner_(own_), wire_(wire) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string host(int) const override { return ""; }
  double limit() const override { return distributed::time_limit(); }
  void set_limit(double) override {}
  void look() const override {}
  void exchange(const void* send, void* receive, size_t bytes, const char*) override {
    {
      const std::lock_guard lock(wire_.mutex);
      if (wire_.begun++ == wire_.fails_at) throw Broken("the wire is cut");
      wire_.changed.notify_all();
    }
    std::vector<char> all(bytes * static_cast<size_t>(size() * size()));
    carry(send, all.data(), bytes * static_cast<size_t>(size()), true);
    for (size_t r = 0, n = static_cast<size_t>(size()); r < n; ++r)
      std::memcpy(static_cast<char*>(receive) + r * bytes, all.data() + (r * n + static_cast<size_t>(rank())) * bytes,
                  bytes);
  }
  void gather(const void* own, void* all, size_t bytes, const char* what) override {
    carry(own, all, bytes, std::string(what) == "a sum");
  }
  std::unique_ptr<Transport> split(int colour, int key) override {
    return std::make_unique<CountingTransport>(inner_.split(colour, key), wire_);
  }
  void abort(const std::string&, int) noexcept override {}

 private:
  void carry(const void* own, void* all, size_t bytes, bool sum) {
    const Stopwatch watch;
    const Tensor x = empty({static_cast<int64_t>(bytes + 3) / 4}, {DType::f32});
    std::memcpy(mutable_bytes_of(x), own, bytes);
    const Tensor y = inner_.all_gather(x);
    for (size_t r = 0; r < static_cast<size_t>(size()); ++r)
      std::memcpy(static_cast<char*>(all) + r * bytes, bytes_of(y) + r * static_cast<size_t>(byte_size(x)), bytes);
    if (!sum) return;
    std::this_thread::sleep_for(Milliseconds(wire_.ms));
    const std::lock_guard lock(wire_.mutex);
    wire_.seconds += watch.seconds();
  }
  Group own_;
  Group& inner_;
  Wire& wire_;
};

// Layers tanh(h W_i); `behind(i)` is called when the backward has passed layer i.
struct Stack {
  std::vector<Tensor> weights;
  Tensor x;
  std::function<void(int)> behind = [](int) {};

  Stack(int layers, int rank) {
    Generator same{1, 0}, own{2, static_cast<uint64_t>(rank) << 20};
    for (int i = 0; i < layers; ++i) weights.push_back(require_grad(randn({kWidth, kWidth}, {}, same)));
    x = require_grad(randn({3, kWidth}, {}, own));
  }
  Tensor loss() const {
    Tensor h = x;
    for (int i = 0; i < std::ssize(weights); ++i) {
      on_grad(h, [this, i](const Tensor& g) { return behind(i), g; });
      h = tanh(matmul(h, weights[static_cast<size_t>(i)]));
    }
    return sum(h);
  }
  void differentiate(GradientSum& sum) const {
    const GradientListener listener{weights, [&](size_t i) { sum.complete(i); }};
    backward(loss(), {}, {.listener = &listener});
  }
};

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(bytes_of(a), bytes_of(b), static_cast<size_t>(byte_size(a))) == 0;
}

}  // namespace

TEST_CASE("sums of gradients: later layers' sums begin during the backward of earlier layers") {
  constexpr int kLayers = 6;
  for (const int layers_of_bucket : {1, 2})
    run_ranks(4, [&](Group& g) {
      Wire wire;
      Group group(std::make_unique<CountingTransport>(g, wire));
      Stack s(kLayers, g.rank());
      GradientSum sum(group, s.weights, layers_of_bucket * kLayerBytes);
      // A weight is complete before what is below its layer is passed.
      s.behind = [&](int i) {
        const int complete = (kLayers - 1 - i) / layers_of_bucket;
        check(wire.has_begun(complete), "behind layer ", i, " no sum of ", complete, " has begun");
      };
      s.differentiate(sum);
      check(wire.has_begun(kLayers / layers_of_bucket), "behind the backward");
      sum.finish();
      check(wire.begun == kLayers / layers_of_bucket + 1, wire.begun, " sums, and one of flags");
    });
}

TEST_CASE("sums of gradients: the bits equal sums after the backward, in any order of arrival") {
  constexpr int kLayers = 5, kRanks = 3;
  for (const int64_t bucket : {int64_t{1}, kLayerBytes, 2 * kLayerBytes, int64_t{1} << 30})
    run_ranks(kRanks, [&](Group& g) {
      Stack s(kLayers, g.rank());
      Generator own{3, static_cast<uint64_t>(g.rank()) << 20};
      std::vector<Tensor> all = s.weights;  // of which the last are no layers
      const Tensor never = require_grad(ones({3})), frozen = require_grad(ones({7}), false),
                   sometimes = require_grad(randn({5}, {DType::f64}, own));
      all.insert(all.begin() + 2, {never, frozen, sometimes});
      // Rank 2 has no rows, rank 1 does not use all.
      const auto loss = [&] { return g.rank() == 1 ? s.loss() : s.loss() + sum(sometimes * sometimes).to(DType::f32); };
      if (g.rank() < 2) backward(loss());
      std::vector<Tensor> expected;
      for (const Tensor& p : all) {
        Tensor own = p.grad().defined() ? p.grad() : zeros(p.shape(), p.options());
        g.all_reduce(own);
        expected.push_back(&p.impl() == &never.impl() || &p.impl() == &frozen.impl() ? Tensor() : own);
        set_grad(p, {});
      }
      GradientSum sum(g, all, bucket);
      const GradientListener listener{all, [&](size_t i) { sum.complete(i); }};
      if (g.rank() < 2) backward(loss(), {}, {.listener = &listener});
      sum.finish();
      for (size_t i = 0; i < all.size(); ++i)
        check(same_numbers(all[i].grad(), expected[i]), "bucket ", bucket, ", gradient ", i);
    });
}

TEST_CASE("sums of gradients: an error of the sending thread reaches the caller") {
  for (const int fails_at : {0, 2, 5}) {
    std::atomic<int> broken = 0;
    CHECK_THROWS_WITH(run_ranks(3,
                                [&](Group& g) {
                                  Wire wire;
                                  if (g.rank() == 1) wire.fails_at = fails_at;
                                  Group group(std::make_unique<CountingTransport>(g, wire));
                                  const Stack s(6, g.rank());
                                  GradientSum sum(group, s.weights, 1);
                                  try {
                                    s.differentiate(sum);
                                    sum.finish();
                                  } catch (const Broken&) {
                                    ++broken;
                                    throw;
                                  }
                                }),
                      "rank 1: the wire is cut");
    CHECK(broken == 1);
  }
  // What another rank calls meanwhile is a Disagreement here, too.
  CHECK_THROWS_AS(run_ranks(2,
                            [](Group& g) {
                              const Stack s(6, g.rank());
                              GradientSum sum(g, s.weights, g.rank() == 0 ? kLayerBytes : 2 * kLayerBytes);
                              s.differentiate(sum);
                              sum.finish();
                            }),
                  distributed::Disagreement);
}

TEST_CASE("sums of gradients: a child of fork() has not the thread that sends them, and says so") {
  Group group;
  const std::vector<Tensor> weights = {require_grad(ones({2})), require_grad(ones({2}))};
  auto sum = std::make_unique<GradientSum>(group, weights, 1);
  sum->complete(1);
  const auto child = [&] {
    alarm(60);  // so that a child that waits for the thread comes to an end
    int refused = 0;
    for (const bool all : {false, true}) try {
        all ? sum->finish() : sum->complete(0);
      } catch (const Error& e) {
        refused += Contains("sum of gradients: its threads are in process").match(e.what());
      }
    sum.reset();
    if (refused != 2) _exit(1);
  };
  CHECK(test::status_of_child(child) == 0);
  sum->finish();
}

TEST_CASE("sums of gradients: a backward that throws ends them; ranks continue if it has thrown on all") {
  const auto fails = [](Group& g, bool here) {
    Stack s(6, g.rank());
    GradientSum sum(g, s.weights, kLayerBytes);
    s.behind = [here](int i) { check(i != 2 || !here, "enough"); };
    s.differentiate(sum);
    sum.finish();
  };
  CHECK_THROWS_WITH(run_ranks(3, [&](Group& g) { fails(g, g.rank() == 1); }), "rank 1: enough");
  run_ranks(3, [&](Group& g) {
    bool thrown = false;
    try {
      fails(g, true);
    } catch (const Error& e) {
      thrown = std::string(e.what()) == "enough";
    }
    check(thrown, "nothing was thrown");
    fails(g, false);
  });
}

// With times that double until the machine's own no longer count.
TEST_CASE("sums of gradients: a longer backward hides nine tenths of their time") {
  constexpr int kLayers = 24, kRanks = 4;
  double hidden = 0;
  for (double ms = 2.5; hidden < 0.9 && ms < 3000; ms *= 2) {
    std::vector<double> of_rank(kRanks);
    run_ranks(kRanks, [&](Group& g) {
      Wire wire;
      wire.ms = ms;
      Group group(std::make_unique<CountingTransport>(g, wire));
      Stack s(kLayers, g.rank());
      s.behind = [&](int) { std::this_thread::sleep_for(Milliseconds(4 * ms)); };
      GradientSum sum(group, s.weights, kLayerBytes);
      g.barrier();
      s.differentiate(sum);
      const Stopwatch watch;
      sum.finish();
      of_rank[static_cast<size_t>(g.rank())] = 1 - watch.seconds() / wire.seconds;
    });
    hidden = std::ranges::min(of_rank);
    UNSCOPED_INFO(ms << " ms: " << hidden);
  }
  CHECK(hidden >= 0.9);
}
