// How work is divided into blocks: that they cover the range, that they are equal, and how exceptions pass through.
#include "core/system/parallel.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu/workspace.h"
#include "core/error.h"
#include "core/system/cores.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/temp_folder.h"
#include "tests/support/threads.h"

using namespace isonorm;

namespace {

// Returns the sizes of the blocks in units. Checks that the blocks follow each other from 0 to n and that all but the
// last consist of whole units.
std::vector<int64_t> units_of(const Partition& b) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < b.count; ++i) {
    const int64_t begin = b.begin(i), end = b.begin(i + 1);
    CHECK(begin % b.unit == 0);
    CHECK((end % b.unit == 0 || i == b.count - 1));
    sizes.push_back((end - begin + b.unit - 1) / b.unit);
  }
  CHECK((b.count > 0) == (b.n > 0));
  if (b.count == 0) return sizes;
  CHECK(b.begin(0) == 0);
  CHECK(b.begin(b.count) == b.n);
  return sizes;
}

// Returns true if `threads` threads are inside one region at the same time. Gives up after ten minutes.
bool meet(int threads) {
  std::atomic<int> inside = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    ++inside;
    while (inside < threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  return std::chrono::steady_clock::now() < end;
}

}  // namespace

TEST_CASE("blocks cover the range, none above the grain, as equal as whole units allow") {
  for (const int64_t unit : {1, 16})
    for (const int64_t grain : {unit, 4 * unit, 16 * unit})
      for (int64_t n = 0; n < 700; ++n) {
        CAPTURE(n, grain, unit);
        const test::Threads three(3);
        for (const Partition& b : {even_blocks(n, grain, unit), thread_blocks(n, grain, unit)}) {
          const std::vector<int64_t> sizes = units_of(b);
          if (sizes.empty()) continue;
          const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
          CHECK(*least > 0);
          CHECK(*most - *least <= 1);
          CHECK(*most * unit <= grain);
        }
      }
}

TEST_CASE("eight, four or two threads get the same number of blocks each, unless every block is a unit") {
  for (int64_t n = 1; n < 700; ++n) {
    const int64_t count = even_blocks(n, 16).count;
    CHECK((count == 1 || count == 2 || count == 4 || count % 8 == 0));
  }
  CHECK(even_blocks(16, 16).count == 1);
  CHECK(even_blocks(65, 16).count == 8);
  CHECK(even_blocks(17, 1).count == 17);
}

TEST_CASE("blocks do not depend on the number of threads; blocks for threads are multiples of them") {
  const test::Threads one(1);
  const int64_t count = even_blocks(1000, 30).count;
  CHECK(thread_blocks(1000, 30).count == 34);
  set_num_threads(3);
  CHECK(even_blocks(1000, 30).count == count);
  CHECK(thread_blocks(1000, 30).count == 36);
  CHECK(thread_blocks(1000, 1000).count == 3);
}

TEST_CASE("parallel_for calls once for each block and says which one it is") {
  const test::Threads two(2);
  for (const int64_t n : {0, 1, 65, 1000}) {
    const Partition blocks = even_blocks(n, 16);
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    parallel_for(blocks, [&](int64_t begin, int64_t end, int64_t block) {
      if (begin != blocks.begin(block) || end != blocks.begin(block + 1)) return;
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& s) { return s == 1; }));
  }
}

TEST_CASE("other threads take the blocks of a delayed thread") {
  const test::Threads two(2);
  std::atomic<int> others = 0;
  parallel_for(16, 1, [&](int64_t begin, int64_t) {
    if (begin != 0) {
      ++others;
      return;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    while (others < 15 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    CHECK(others == 15);
  });
}

TEST_CASE("an exception of a thread arrives in the calling thread, after all blocks") {
  for (const int threads : {1, 2, 3}) {
    const test::Threads guard(threads);
    std::atomic<int> calls = 0;
    const auto run = [&] {
      parallel_for(12, 1, [&](int64_t begin, int64_t) {
        ++calls;
        check(begin != 11, "block ", begin);
      });
    };
    CHECK_THROWS_WITH(run(), "block 11");
    CHECK(calls == 12);
  }
}

TEST_CASE("control groups of both versions, and the groups above them, limit the cores") {
  const TempFolder root;
  const auto write = [&](const std::filesystem::path& name, const char* words) {
    create_directories((root.path / name).parent_path());
    std::ofstream(root.path / name) << words;
  };
  const auto cores = [&] { return cores_of_groups(root.path.string()); };
  CHECK(cores() == 0);
  SECTION("v2") {
    write("proc/self/cgroup", "0::/a/b\n");
    CHECK(cores() == 0);
    write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK(cores() == 0);
    write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    CHECK(cores() == 1.5);
    write("sys/fs/cgroup/cpu.max", "50000 100000\n");
    CHECK(cores() == 0.5);
    write("proc/self/cgroup", "0::/\n");
    CHECK(cores() == 0.5);
  }
  SECTION("v1, beside an empty v2") {
    write("proc/self/cgroup", "5:cpuset:/a/b\n4:cpu,cpuacct:/a/b\n1:name=systemd:/c\n0::/a/b\n");
    CHECK(cores() == 0);
    write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    CHECK(cores() == 0);
    write("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    CHECK(cores() == 0);
    write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "125000\n");
    write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n");
    CHECK(cores() == 2.5);
    write("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "70000\n");
    CHECK(cores() == 0.7);
  }
  SECTION("v1 in a container, whose folder is the group's own") {
    write("proc/self/cgroup", "4:cpuacct,cpu:/docker/0123\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(cores() == 2);
  }
}

TEST_CASE("the number of threads has bounds") {
  const int before = num_threads();
  for (const int n : {0, -1, kMostThreads + 1, 40000})
    CHECK_THROWS_WITH(set_num_threads(n), Catch::Matchers::Contains("expected 1 to 1024"));
  CHECK(num_threads() == before);
}

TEST_CASE("a child of fork() works in parallel, with threads of its own") {
  const test::Threads two(2);
  CHECK(meet(2));
  const auto works = [] {
    alarm(600);  // ends a child that waits for threads that it does not have
    _exit(meet(2) && num_threads() == 2 ? 0 : 1);
  };
  CHECK(test::status_of_child(works) == 0);
  CHECK(meet(2));
}

TEST_CASE("threads that wait for work leave the cores to others") {
  const test::Threads two(2);
  meet(2);
  const auto cpu = [] {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  const double before = cpu();
  for (int i = 0; i < 50; ++i) {
    parallel_for(8, 1, [](int64_t, int64_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  CHECK(cpu() - before < 0.05);  // a spinning thread takes 0.2 s and more
}

TEST_CASE("the code of sleeping threads stays loaded when its library is unloaded") {
  void* const library = dlopen(ISONORM_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library);
  CHECK(reinterpret_cast<int (*)()>(dlsym(library, "blocks_done"))() == 9);
  dlclose(library);
  void* const still = dlopen(ISONORM_TEST_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  CHECK(still);
  if (still) dlclose(still);
}

TEST_CASE("several threads work in parallel at once, each with indices of its own") {
  constexpr int users = 4, regions = 500;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int u = 0; u < users; ++u)
    threads.emplace_back([&, u] {
      set_num_threads(2 + u % 3);
      for (int r = 0; r < regions; ++r) {
        std::atomic<int> inside[4] = {}, sum = 0;
        parallel_for(40, 1, [&](int64_t begin, int64_t) {
          const int index = thread_index();
          wrong += index >= num_threads() || num_threads() != 2 + u % 3 || inside[index]++ != 0;
          sum += static_cast<int>(begin);
          parallel_for(3, 1, [&](int64_t, int64_t) { wrong += thread_index() != index; });
          --inside[index];
        });
        wrong += sum != 780 || thread_index() != 0;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a region does not wait for helpers that work for another region") {
  const test::Threads two(2);
  std::atomic<int> inside = 0;
  std::atomic<bool> leave = false;
  std::thread other([&] {
    set_num_threads(2);
    parallel_for(2, 1, [&](int64_t, int64_t) {
      ++inside;
      while (!leave) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  int blocks = 0;  // run by this thread: the one worker that there may be for two is held up
  const std::thread::id self = std::this_thread::get_id();
  parallel_for(16, 1, [&](int64_t, int64_t) { blocks += std::this_thread::get_id() == self; });
  CHECK(blocks == 16);
  leave = true;
  other.join();
}

TEST_CASE("the number of threads is the calling thread's own, and holds inside of a region until its end") {
  const test::Threads two(2);
  int elsewhere = 0;
  std::thread([&] {
    set_num_threads(7);
    elsewhere = num_threads();
  }).join();
  CHECK(elsewhere == 7);
  CHECK(num_threads() == 2);
  std::atomic<int> wrong = 0;
  std::atomic<bool> here = false;  // makes the other thread leave this one a block, however late this one is
  const std::thread::id self = std::this_thread::get_id();
  parallel_for(8, 1, [&](int64_t, int64_t) {
    set_num_threads(3);
    wrong += num_threads() != 2;
    if (std::this_thread::get_id() == self) here = true;
    while (!here) std::this_thread::yield();
  });
  CHECK(wrong == 0);
  CHECK(num_threads() == 3);
}

TEST_CASE("a workspace that finds no memory inside of a parallel region is an error, not the end of the program") {
  const test::Threads two(2);
  const auto run = [] { parallel_for(8, 1, [](int64_t, int64_t) { Workspace<float> memory(int64_t{1} << 46); }); };
  CHECK_THROWS_WITH(run(), Catch::Matchers::Contains("allocate: "));
}
