// The order in which blocks, warps and lanes execute. CUDA promises none, so results may not depend on it.
#pragma once

#include <cstdint>
#include <vector>

namespace isonorm::ptx {

class Schedule {
 public:
  enum class Order { forward, reverse, drawn };
  // drawn: blocks and warps come in an order drawn by the seed; a warp is interrupted after at most 64 instructions, and of
  // lanes that took different branches now and then others than those furthest behind go on.
  explicit Schedule(Order order = Order::forward, uint64_t seed = 1) : order_(order), random_(2 * seed + 1) {}

  std::vector<uint32_t> order_of(uint32_t count);
  int64_t turn();  // instructions that a warp executes before others do
  int lane();      // whose group goes on; -1: the lanes furthest behind

 private:
  uint64_t draw(uint64_t below);
  Order order_;
  uint64_t random_;
};

// What launches follow; at first ISONORM_PTX_ORDER: forward (or unset), reverse, or a number, the seed of a drawn order.
Schedule& schedule();

}  // namespace isonorm::ptx
