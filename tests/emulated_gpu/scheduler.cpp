#include "tests/emulated_gpu/scheduler.h"

#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated_gpu/block_run.h"
#include "tests/emulated_gpu/shared_memory.h"

namespace isonorm::gpu::emulated {
namespace {

// A permutation of the blocks of a grid: b -> (a b + c) mod blocks with a coprime to their number.
struct Order {
  uint64_t blocks, a = 1, c = 0;
  Order(uint64_t blocks, uint64_t seed) : blocks(blocks) {
    if (seed == 0) return;
    const uint64_t h = seed * 0xD1B54A32D192ED03;
    c = (h >> 17) % blocks;
    for (a = 1 + h % blocks; std::gcd(a, blocks) != 1;) a = 1 + a % blocks;
  }
  uint64_t operator[](uint64_t k) const { return (a * k + c) % blocks; }
};

}  // namespace

Schedule& schedule() {
  static Schedule s;
  return s;
}

const char* refusal_of(dim3 blocks, dim3 threads, size_t dynamic) {
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return "a grid without blocks";
  if (blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535) return "a grid over 2147483647 x 65535 x 65535";
  if (count == 0 || count > 1024 || threads.z > 64) return "a block that is empty or over 1024 threads";
  if (count % 32 != 0) return "a block that is not whole warps";
  if (dynamic > SharedMemory::kMost) return "over 232448 bytes of shared memory";
  return nullptr;
}

void run(const Grid& g) {
  if (const char* refusal = refusal_of(g.blocks, g.threads, g.dynamic))
    throw Fault(std::string(g.name) + ": " + refusal);
  const uint64_t blocks = uint64_t{g.blocks.x} * g.blocks.y * g.blocks.z;
  const Schedule s = schedule();
  const Order order(blocks, s.seed);
  std::atomic<uint64_t> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto work = [&] {
    BlockRun& run = BlockRun::of_this_thread();
    try {
      for (uint64_t k; (k = next.fetch_add(1)) < blocks;) {
        const uint64_t b = order[k];
        const uint3 at{static_cast<unsigned>(b % g.blocks.x), static_cast<unsigned>(b / g.blocks.x % g.blocks.y),
                       static_cast<unsigned>(b / g.blocks.x / g.blocks.y)};
        run.run(g, at, s.seed ? s.seed + b : 0);
      }
    } catch (...) {
      next = blocks;
      std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
    run.finish_grid();
  };
  std::vector<std::thread> others;
  for (int t = 1; t < s.os_threads && static_cast<uint64_t>(t) < blocks; ++t) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace isonorm::gpu::emulated
