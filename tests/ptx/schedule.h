// The order in which blocks, warps and lanes execute. CUDA promises no order, so results must not depend on it.
#pragma once

#include <cstdint>
#include <vector>

namespace isonorm::ptx {

class Schedule {
 public:
  enum class Order { forward, reverse, drawn };
  // drawn: the order of blocks and warps is random. A warp is interrupted after at most 64 instructions. If lanes took
  // different branches, the lanes at the earliest instruction usually execute first, now and then other lanes.
  explicit Schedule(Order order = Order::forward, uint64_t seed = 1) : order_(order), random_(2 * seed + 1) {}

  std::vector<uint32_t> order_of(uint32_t count);
  int64_t turn();  // number of instructions that a warp executes before it is interrupted
  int lane();      // a lane of the group that executes next; -1: the group at the earliest instruction

 private:
  uint64_t draw(uint64_t below);
  Order order_;
  uint64_t random_;
};

// The schedule of all launches. The first call reads ISONORM_PTX_ORDER: forward (or unset), reverse, or a number, the
// seed of a drawn order.
Schedule& schedule();

}  // namespace isonorm::ptx
