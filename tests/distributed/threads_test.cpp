// Groups with a single rank and groups of threads.
#include "distributed/world.h"

#include <memory>
#include <thread>

#include "tests/distributed/suite.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;

TEST_CASE("ranks: as one process and as threads, every call follows its definition") {
  Group one;
  test::check_group(one);
  CHECK(one.bytes_sent() == 0);
  CHECK(distributed::world().size() == 1);
  for (const int n : {1, 2, 3, 4, 7, 64}) {
    INFO(n);
    CHECK_NOTHROW(run_ranks(n, [](Group& g) { test::check_group(g); }));
  }
}

TEST_CASE("ranks: an all_reduce sends twice the bytes that a rank does not keep") {
  for (const int n : {2, 4, 7})
    run_ranks(n, [&](Group& g) {
      const int64_t before = g.bytes_sent();
      g.all_reduce(empty({28 * 5}, {DType::f64}));
      check(g.bytes_sent() - before == 2 * (n - 1) * 28 * 5 * 8 / n, g.bytes_sent() - before, " bytes");
    });
}

TEST_CASE("ranks: one that throws, ends early, or stays away ends all, and is named") {
  const auto reduce = [](Group& g) { g.all_reduce(empty({4}, {DType::f32})); };
  CHECK_THROWS_WITH(run_ranks(4,
                              [&](Group& g) {
                                reduce(g);
                                check(g.rank() != 2, "no such file");
                                reduce(g);
                              }),
                    "rank 2: no such file");
  CHECK_THROWS_WITH(
      run_ranks(3,
                [&](Group& g) {
                  if (g.rank() != 1) reduce(g);
                }),
      Contains("rank 1 calls nothing more (its call 1), rank 0 all_reduce (its call 1) of 4 numbers of f32"));
  CHECK_THROWS_WITH(run_ranks(
                        4,
                        [&](Group& g) {
                          if (g.rank() % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
                          reduce(g);
                        },
                        0.05),
                    Contains("all_reduce: rank 1, rank 3 have not come within 0.05 s"));
  CHECK_THROWS_WITH(run_ranks(2,
                              [&](Group& g) {
                                if (g.rank() == 1) g.abort("enough");
                                reduce(g);
                              }),
                    Contains("rank 1 ended: enough"));
  CHECK_THROWS_WITH(run_ranks(3,
                              [&](Group& g) {
                                Group pair = g.split(g.rank() / 2);
                                check(g.rank() != 2, "alone");
                                reduce(pair), reduce(pair);
                                g.barrier();
                              }),
                    "rank 2: alone");
  CHECK_THROWS_WITH(run_ranks(0, reduce), Contains("0 ranks asked for, expected 1 to 1024"));

  distributed::Ranks two(2);  // run() works repeatedly, until one call has failed
  for (int i = 0; i < 3; ++i) two.run(reduce);
  distributed::Ranks inner(2);
  CHECK_THROWS_WITH(inner.run([&](Group&) { inner.run(reduce); }), Contains("run() is called while they run"));
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH(two.run([&](Group& g) { check(g.rank() != 0 || i > 0, "once"), reduce(g); }), "rank 0: once");
}

TEST_CASE("ranks: the others wait for the first rank's work without a time limit, and not for work that throws") {
  const double limit = 3;
  CHECK_NOTHROW(run_ranks(
      3,
      [&](Group& g) {
        bool done = false;
        g.on_first([&] {
          std::this_thread::sleep_for(std::chrono::duration<double>(limit + 1));
          done = true;
        });
        check(done == (g.rank() == 0), "rank ", g.rank(), " has done it: ", done);
      },
      limit));
  CHECK_THROWS_WITH(run_ranks(3, [](Group& g) { g.on_first([] { check(false, "the disk is full"); }); }),
                    "rank 0: the disk is full");
  const auto late = [](Group& g) {
    if (g.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
    g.on_first([] {});
  };
  CHECK_THROWS_WITH(run_ranks(3, late, 1), Contains("on_first: rank 2 has not come within 1 s"));
}

TEST_CASE("ranks: values that cannot be sent are refused") {
  run_ranks(2, [&](Group& g) {
    const auto refused = [](const char* part, const auto& f) {
      try {
        f();
      } catch (const Error& e) {
        return check(std::string(e.what()).find(part) != std::string::npos, e.what());
      }
      check(false, part);
    };
    refused("all_reduce: dtype is u8", [&] { g.all_reduce(empty({2}, {DType::u8})); });
    refused("all_reduce: tensors of f32 and of f64", [&] {
      g.all_reduce(std::vector<Tensor>{empty({2}, {DType::f32}), empty({2}, {DType::f64})});
    });
    refused("strides", [&] { g.all_reduce(as_strided(empty({2, 2}, {DType::f32}), {2, 2}, {1, 2}, 0)); });
    refused("reduce_scatter: shape [3]", [&] { g.reduce_scatter(empty({3}, {DType::f32})); });
    refused("broadcast: from rank 2 of 2", [&] { g.broadcast(empty({3}, {DType::f32}), 2); });
    refused("split: colour is -1", [&] { g.split(-1); });
  });
}

TEST_CASE("ranks: a child of fork() has not their threads, and says so") {
  const auto reduce = [](Group& g) { g.all_reduce(empty({4}, {DType::f32})); };
  auto ranks = std::make_unique<distributed::Ranks>(2);
  ranks->run(reduce);
  const auto child = [&] {
    alarm(60);  // ends a child that would wait for the threads forever
    bool refused = false;
    try {
      ranks->run(reduce);
    } catch (const Error& e) {
      refused = Contains("ranks: its threads are in process").match(e.what());
    }
    ranks.reset();
    run_ranks(2, reduce);
    if (!refused) _exit(1);
  };
  CHECK(test::status_of_child(child) == 0);
  ranks->run(reduce);
}
