// The order in which blocks, warps and lanes execute. CUDA promises none, so results may not depend on it.
#pragma once

#include <cstdint>
#include <vector>

namespace isonorm::ptx {

class Schedule {
 public:
  enum class Order { forward, reverse, drawn };
  // drawn: the seed draws the order of blocks and warps. A warp is interrupted after at most 64 instructions. If lanes took
  // different branches, the lanes furthest behind usually go on first, now and then other lanes.
  explicit Schedule(Order order = Order::forward, uint64_t seed = 1) : order_(order), random_(2 * seed + 1) {}

  std::vector<uint32_t> order_of(uint32_t count);
  int64_t turn();  // instructions that a warp executes before others do
  int lane();      // whose group goes on; -1: the lanes furthest behind

 private:
  uint64_t draw(uint64_t below);
  Order order_;
  uint64_t random_;
};

// The schedule of all launches. ISONORM_PTX_ORDER sets it at the start of the process: forward (or unset), reverse, or a
// number, the seed of a drawn order.
Schedule& schedule();

}  // namespace isonorm::ptx
