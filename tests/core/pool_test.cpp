// Small blocks: alignment, reuse, objects and threads.
#include "core/memory/pool.h"

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/tensor.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("blocks are aligned, apart from each other, and as large as asked for") {
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{65}, pool::kLargest, pool::kLargest + 1, size_t{5000}}) {
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 100; ++i) {
      blocks.push_back(static_cast<unsigned char*>(pool::take(bytes)));
      CHECK(reinterpret_cast<uintptr_t>(blocks.back()) % 64 == 0);
      std::fill_n(blocks.back(), bytes, static_cast<unsigned char>(i));
    }
    for (int i = 0; i < 100; ++i) {
      CHECK(std::all_of(blocks[i], blocks[i] + bytes, [&](unsigned char c) { return c == i; }));
      pool::give(blocks[i], bytes);
    }
  }
}

#ifndef __SANITIZE_ADDRESS__  // with it, every block goes back to the system
TEST_CASE("a block that was given back serves the next request of its size") {
  void* const block = pool::take(100);
  pool::give(block, 100);
  void* const other = pool::take(200);
  CHECK(other != block);
  void* const again = pool::take(128);
  CHECK(again == block);
  pool::give(other, 200);
  pool::give(again, 128);
}
#endif

TEST_CASE("objects are destroyed once, whatever their size") {
  const auto counted = std::make_shared<int>();
  struct Large {
    std::shared_ptr<int> count;
    std::array<double, 100> more;
  };
  {
    const auto a = pool::make_shared<std::shared_ptr<int>>(counted), b = a;
    const auto c = pool::make_shared<Large>(Large{counted, {}});
    CHECK(counted.use_count() == 3);
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("a thread releases memory of another thread, also after that one has ended") {
  constexpr int kTensors = 10000;  // more than a thread keeps
  std::vector<Tensor> made;
  const auto make = [&] {
    for (int i = 0; i < kTensors; ++i) made.push_back(tensor({double(i)}));
  };
  const auto release = [&] {
    for (int i = 0; i < kTensors; ++i) {
      if (made[i].item() != i) FAIL("tensor " << i << " holds " << made[i].item());
      made[i] = {};
    }
    made.clear();
  };
  for (int round = 0; round < 3; ++round) {
    std::thread(make).join();
    release();
    make();
    std::thread(release).join();
  }
}

TEST_CASE("a thread may release after its lists are closed") {
  std::thread([] {
    thread_local std::shared_ptr<int> last;  // made before the lists are opened, so destroyed after they are closed
    last = pool::make_shared<int>(1);
    last = pool::make_shared<int>(2);
  }).join();
}
