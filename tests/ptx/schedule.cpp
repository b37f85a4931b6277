#include "tests/ptx/schedule.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace isonorm::ptx {

uint64_t Schedule::draw(uint64_t below) {  // xorshift64 (Marsaglia 2003)
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ % below;
}

std::vector<uint32_t> Schedule::order_of(uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (order_ == Order::reverse) std::ranges::reverse(order);
  if (order_ == Order::drawn)
    for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw(i)]);
  return order;
}
int64_t Schedule::turn() { return order_ == Order::drawn ? 1 + static_cast<int64_t>(draw(64)) : INT64_MAX; }
int Schedule::lane() { return order_ == Order::drawn && draw(8) == 0 ? static_cast<int>(draw(32)) : -1; }

Schedule& schedule() {
  static Schedule all = [] {
    const char* const s = std::getenv("ISONORM_PTX_ORDER");
    const std::string_view order = s ? s : "forward";
    if (order == "reverse") return Schedule(Schedule::Order::reverse);
    return order == "forward" || order.empty() ? Schedule()
                                               : Schedule(Schedule::Order::drawn, std::strtoull(s, nullptr, 10));
  }();
  return all;
}

}  // namespace isonorm::ptx
