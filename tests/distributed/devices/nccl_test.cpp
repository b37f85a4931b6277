// Threads as ranks, each with its own emulated GPU; an emulated NCCL carries their tensors.
#include "tests/emulated_gpu/libraries/nccl.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/system/stopwatch.h"
#include "distributed/world.h"
#include "tests/distributed/suite.h"
#include "tests/emulated_gpu/runtime.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::gpu;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;
using emulated::nccl_aborts, emulated::nccl_groups, emulated::nccl_settings, emulated::runtime_settings;

namespace {

[[maybe_unused]] const bool started = [] {
  runtime_settings().devices = 4;
  runtime_settings().libraries = true;
  return true;
}();

Device device_of_rank(const Group& g) { return {DeviceKind::cuda, g.rank()}; }

Tensor ones(Device device, int64_t n = 4) {
  return test::on(device, from_vector(std::vector<float>(static_cast<size_t>(n), 1), {n}));
}
void reduce(Group& g, Device device) { g.all_reduce(ones(device)); }
void reduce(Group& g) { reduce(g, device_of_rank(g)); }

int64_t groups_of(const std::function<void()>& f) {
  const int64_t before = nccl_groups();
  f();
  return nccl_groups() - before;
}

// Switches on a fault of the emulated NCCL during its lifetime.
struct Setting {
  std::atomic<bool>& flag;
  explicit Setting(std::atomic<bool>& flag) : flag(flag) { flag = true; }
  ~Setting() { flag = false; }
};

}  // namespace

TEST_CASE("NCCL: every call on GPUs gives what its definition says, to the last bit") {
  for (const emulated::Pace pace : {emulated::Pace::lazy, emulated::Pace::drawn}) {
    runtime_settings().pace = pace;
    for (const int n : {1, 2, 3, 4}) {
      INFO(n);
      const int64_t groups = groups_of([&] {
        CHECK_NOTHROW(run_ranks(n, [](Group& g) {
          test::check_group(g, device_of_rank(g), 20'000);
          check(g.why_by_host().empty(), g.why_by_host());
        }));
      });
      // 4 dtypes, at least 3 sizes, 6 sums and gathers with one or two NCCL groups each.
      CHECK((n == 1 ? groups == 0 : groups >= 4 * 3 * 10));
    }
  }
  runtime_settings().pace = emulated::Pace::lazy;
  CHECK(nccl_aborts() == 0);
}

TEST_CASE("NCCL: all ranks go through the host if one cannot use NCCL") {
  const auto by_host = [](const std::string& why, const std::function<Device(int rank)>& device) {
    CHECK(groups_of([&] {
            run_ranks(3, [&](Group& g) {
              test::check_group(g, device(g.rank()), 1'000);
              check(g.why_by_host() == why, "'", g.why_by_host(), "'");
            });
          }) == 0);
  };
  by_host("ranks 0 and 2 have one GPU", [](int rank) { return Device{DeviceKind::cuda, rank % 2}; });
  by_host("", [](int rank) { return rank == 2 ? kCpu : Device{DeviceKind::cuda, rank}; });
  setenv("ISONORM_NCCL", "0", 1);
  by_host("rank 0: ISONORM_NCCL is 0", [](int rank) { return Device{DeviceKind::cuda, rank}; });
  unsetenv("ISONORM_NCCL");
  runtime_settings().libraries = false;
  by_host("rank 0: the device is emulated", [](int rank) { return Device{DeviceKind::cuda, rank}; });
  runtime_settings().libraries = true;
  // One rank's tensors are on another device: this call travels through the host, the next one by NCCL.
  CHECK(groups_of([] {
          run_ranks(2, [](Group& g) {
            reduce(g);
            reduce(g, {DeviceKind::cuda, 2 + g.rank()});
            reduce(g, g.rank() == 0 ? kCpu : device_of_rank(g));
            reduce(g);
          });
        }) == 4);
}

TEST_CASE("NCCL: one that throws, ends early, stays away or calls something else ends all, and is named") {
  CHECK_THROWS_WITH(run_ranks(4,
                              [](Group& g) {
                                reduce(g);
                                check(g.rank() != 2, "no such file");
                                reduce(g);
                              }),
                    "rank 2: no such file");
  CHECK_THROWS_WITH(run_ranks(3,
                              [](Group& g) {
                                reduce(g);
                                if (g.rank() != 1) reduce(g);
                              }),
                    Contains("rank 1 calls nothing more (its call 2), rank 0 all_reduce (its call 2)"));
  CHECK_THROWS_WITH(run_ranks(
                        3,
                        [](Group& g) {
                          reduce(g);
                          if (g.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2'000));
                          reduce(g);
                        },
                        0.5),
                    Contains("all_reduce: rank 1 has not come within 0.5 s"));
  CHECK_THROWS_WITH(run_ranks(2,
                              [](Group& g) {
                                reduce(g);
                                g.rank() == 0 ? reduce(g) : g.broadcast(ones(device_of_rank(g)));
                              }),
                    Contains("rank 1 calls broadcast"));
}

TEST_CASE("NCCL: its errors end all ranks, which give their communicators up") {
  for (const char* function : {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError", "ncclGroupStart",
                               "ncclGroupEnd", "ncclSend", "ncclRecv", "ncclAllGather"}) {
    INFO(function);
    const bool by_host = std::string(function) == "ncclGetUniqueId";
    const Stopwatch watch;
    const auto two = [&] {
      emulated::fail_next(function, cudaErrorLaunchFailure);
      run_ranks(
          2, [](Group& g) { reduce(g); }, 600);
    };
    if (by_host)
      CHECK_NOTHROW(two());  // the fault precedes NCCL's start
    else
      CHECK_THROWS_WITH(two(), Contains("NCCL: "));
    CHECK(watch.seconds() < 300);
    emulated::fail_next("", cudaSuccess);
  }
  CHECK(nccl_aborts() > 0);
}

TEST_CASE("NCCL: what does not end is given up when the time is over, and no later call uses it") {
  const Setting lost(nccl_settings().loses_groups);
  CHECK_NOTHROW(run_ranks(
      2,
      [](Group& g) {
        for (const char* part :
             {"a sum: NCCL is not done within 1 s", "a sum: NCCL was ended by: a sum: NCCL is not"}) {
          std::string line;
          try {
            reduce(g);
          } catch (const Error& e) {
            line = e.what();
          }
          check(line.find(part) != std::string::npos, "the line is '", line, "'");
        }
      },
      1));
}

TEST_CASE("NCCL: nobody waits for an end that does not come") {
  const Stopwatch watch;
  {
    const Setting hangs(nccl_settings().abort_hangs);
    emulated::fail_next("ncclCommGetAsyncError", cudaErrorLaunchFailure, 5);
    CHECK_THROWS_WITH(run_ranks(2, [](Group& g) { reduce(g); }), Contains("NCCL: remote process exited"));
  }
  CHECK(watch.seconds() < 300);
}
