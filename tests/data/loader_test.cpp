// Batches: which examples, which values, and the thread that prepares them.
#include "io/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "io/data/prefetch.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"

using namespace isonorm;
using namespace isonorm::data;
using Catch::Matchers::Contains;

namespace {

// n images of 2 x 3; image i has pixels 6i .. 6i + 5 and label i.
LabelledImages numbered(int64_t n) {
  std::vector<uint8_t> pixels(static_cast<size_t>(n * 6));
  std::vector<int64_t> labels(static_cast<size_t>(n));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i);
  return {from_vector(pixels, {n, 2, 3}), from_vector(labels, {n})};
}
std::vector<int64_t> labels_of(const Batch& b) { return b.labels.to_vector<int64_t>(); }

}  // namespace

TEST_CASE("sampler: an epoch visits every example once, each epoch in another order") {
  Sampler s(103, 10, 7);
  CHECK(s.steps_per_epoch() == 10);
  std::vector<std::vector<int64_t>> epochs;
  for (int e = 0; e < 3; ++e) {
    std::vector<int64_t> seen;
    for (int i = 0; i < 10; ++i)
      for (int64_t k : s.batch(e * 10 + i)) seen.push_back(k);
    CHECK(std::set<int64_t>(seen.begin(), seen.end()).size() == 100);
    CHECK(*std::min_element(seen.begin(), seen.end()) >= 0);
    CHECK(*std::max_element(seen.begin(), seen.end()) < 103);
    epochs.push_back(seen);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST_CASE("sampler: a batch depends on seed and step only") {
  Sampler a(50, 8, 3), b(50, 8, 3), other(50, 8, 4);
  const auto at = [](Sampler& s, int64_t step) {
    const auto k = s.batch(step);
    return std::vector<int64_t>(k.begin(), k.end());
  };
  std::vector<std::vector<int64_t>> forward;
  for (int64_t step = 0; step < 20; ++step) forward.push_back(at(a, step));
  for (int64_t step = 19; step >= 0; --step) CHECK(at(b, step) == forward[step]);
  CHECK(at(other, 0) != forward[0]);
  CHECK_THROWS_WITH(a.batch(-1), Contains("-1 is negative"));
  CHECK_THROWS_WITH(Sampler(5, 6, 0), Contains("6 rows") && Contains("5"));
  CHECK_THROWS_WITH(Sampler(5, 0, 0), Contains("0 rows"));
  CHECK_THROWS(Sampler(0, 1, 0));
}

TEST_CASE("sampler: every order of four is equally likely") {
  // 24 orders, 2400 trials: chi-squared with 23 degrees of freedom is below 49.7 with probability 0.999; the seeds are
  // fixed.
  std::vector<int> count(256);
  for (uint64_t seed = 0; seed < 2400; ++seed) {
    Sampler s(4, 4, seed);
    const auto k = s.batch(0);
    ++count[k[0] * 64 + k[1] * 16 + k[2] * 4 + k[3]];
  }
  double chi = 0;
  int orders = 0;
  for (int c : count)
    if (c) chi += (c - 100.0) * (c - 100.0) / 100, ++orders;
  CHECK(orders == 24);
  CHECK(chi < 49.7);
}

TEST_CASE("batches hold (pixel / 255 - mean) / std in every dtype") {
  const LabelledImages set = numbered(20);
  const std::vector<int64_t> indices = {3, 0, 19, 3};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Batch b = gather_batch(set, indices, {.mean = {0.25}, .std = {0.5}, .dtype = dtype});
    CHECK(b.images.shape() == Dims{4, 2, 3, 1});
    CHECK(b.images.dtype() == dtype);
    CHECK(labels_of(b) == indices);
    const auto x = b.images.to_vector<double>();
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < 6; ++i) {
        const double exact = ((indices[r] * 6 + i) / 255.0 - 0.25) / 0.5;
        CHECK(std::abs(x[r * 6 + i] - exact) <= epsilon(dtype) / 2 * std::abs(exact));  // one rounding
      }
  }
  CHECK(labels_of(slice_batch(set, 17, 3)) == std::vector<int64_t>{17, 18, 19});
  CHECK_THROWS_WITH(slice_batch(set, 18, 3), Contains("18 to 21 of a set of 20"));
  CHECK_THROWS_WITH(gather_batch(set, std::vector<int64_t>{20}), Contains("index 20 of a set of 20"));
  CHECK_THROWS_WITH(gather_batch(set, indices, {.std = {0}}), Contains("std is 0"));
  CHECK_THROWS_WITH(gather_batch({set.images, numbered(19).labels}, indices), Contains("[20, 2, 3] and labels [19]"));
  CHECK_THROWS_WITH(gather_batch(set, indices, {.dtype = DType::i64}), Contains("i64"));
}

TEST_CASE("the scale of a set is the mean and deviation of its pixels, to four digits") {
  // 0, 51, 102, 153, 204 and 255 of 255, with a mean of 1/2 and a variance of 35/300.
  const Tensor pixels = from_vector<uint8_t>({0, 51, 102, 153, 204, 255}, {1, 2, 3});
  const PixelScale scale = measured_scale({pixels, numbered(1).labels}, DType::f64);
  CHECK((scale.mean == std::vector{0.5} && scale.std == std::vector{0.3416} && scale.dtype == DType::f64));
  const PixelScale flat = measured_scale({from_vector(std::vector<uint8_t>(18, 100), {2, 3, 3}), numbered(2).labels});
  CHECK((flat.mean == std::vector{0.3922} && flat.std == std::vector{1.0}));
}

TEST_CASE("loader: next() gives the same batches with and without a thread") {
  const LabelledImages set = numbered(40);
  Loader direct(set, {.rows = 6, .seed = 5, .prefetch = 0}), threaded(set, {.rows = 6, .seed = 5, .prefetch = 3});
  for (int step = 0; step < 30; ++step) {
    const auto expected = labels_of(direct.batch(step));
    CHECK(labels_of(direct.next()) == expected);
    CHECK(labels_of(threaded.next()) == expected);
  }
  threaded.seek(11);
  CHECK(labels_of(threaded.next()) == labels_of(direct.batch(11)));
  CHECK(labels_of(threaded.next()) == labels_of(direct.batch(12)));
}

TEST_CASE("loader: a range-for passes the rest of an epoch, batch by batch as next() gives them") {
  const LabelledImages set = numbered(20);
  for (const int prefetch : {0, 2}) {
    Loader loader(set, {.rows = 6, .seed = 5, .prefetch = prefetch});  // three batches an epoch
    int64_t step = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& [images, labels] : loader) {
        const Batch b = loader.batch(step++);
        CHECK(labels.to_vector<int64_t>() == labels_of(b));
        CHECK(images.to_vector<float>() == b.images.to_vector<float>());
      }
      CHECK(step == 3 * (epoch + 1));
      CHECK(loader.step() == step);
    }
    loader.seek(step = 10);  // the second of its epoch
    for (const Batch& b : loader) CHECK(labels_of(b) == labels_of(loader.batch(step++)));
    CHECK(step == 12);
  }
}

TEST_CASE("loader: without shuffling an epoch is the set in order, its end included") {
  Loader loader(numbered(20), {.rows = 6, .shuffle = false});
  CHECK(loader.steps_per_epoch() == 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    for (const auto& [images, labels] : loader)
      for (const int64_t i : labels.to_vector<int64_t>()) seen.push_back(i);
    std::vector<int64_t> all(20);
    std::iota(all.begin(), all.end(), 0);
    CHECK(seen == all);
  }
}

TEST_CASE("prefetch: order, bound, errors and end") {
  std::atomic<int64_t> made{0};
  Prefetch<int64_t> p([&](int64_t i) { return made = i + 1, i * i; }, 4);
  for (int64_t i = 0; i < 100; ++i) CHECK(p.next() == i * i);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(made <= 100 + 5);  // four wait, a fifth is in the thread's hand

  bool broken = true;
  Prefetch<int64_t> q(
      [&](int64_t i) {
        check(i != 3 || !broken, "item three is broken");
        return i;
      },
      2);
  for (int64_t i = 0; i < 3; ++i) CHECK(q.next() == i);
  CHECK_THROWS_WITH(q.next(), "item three is broken");
  CHECK_THROWS_WITH(q.next(), "item three is broken");
  broken = false;
  CHECK(q.next() == 3);
  CHECK(q.next() == 4);
  CHECK_THROWS_WITH(Prefetch<int64_t>([](int64_t i) { return i; }, -1), Contains("-1"));
  Prefetch<int64_t> unused([](int64_t i) { return i; }, 2);  // ends without a thread
}

TEST_CASE("prefetch, loader: a child of fork() has not the thread, says so and can make its own") {
  const LabelledImages set = numbered(40);
  const LoaderOptions options = {.rows = 6, .seed = 5, .prefetch = 2};
  auto loader = std::make_unique<Loader<LabelledImages>>(set, options),
       unused = std::make_unique<Loader<LabelledImages>>(set, options);
  const auto expected = labels_of(loader->batch(1));
  loader->next();
  const auto child = [&] {
    alarm(60);  // so that a child that waits for the thread comes to an end
    const auto refuses = [](const auto& call) {
      try {
        call();
      } catch (const Error& e) {
        return Contains("prefetch: its threads are in process").match(e.what());
      }
      return false;
    };
    bool good = refuses([&] { loader->next(); }) && refuses([&] { loader->seek(0); });
    good = good && loader->step() == 1 && labels_of(loader->batch(1)) == expected;
    loader.reset();
    Loader own(set, options);
    own.seek(1);
    unused->seek(1);
    good = good && labels_of(own.next()) == expected && labels_of(unused->next()) == expected;
    if (!good) _exit(1);
  };
  CHECK(test::status_of_child(child) == 0);
  CHECK(labels_of(loader->next()) == expected);
}
