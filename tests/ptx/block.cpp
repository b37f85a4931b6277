#include "tests/ptx/block.h"

#include <algorithm>

#include "tests/ptx/lanes.h"
#include "tests/ptx/schedule.h"

namespace isonorm::ptx {

uint32_t Block::special(Special s, uint32_t thread) const {
  switch (s) {
    case Special::tid_x:
      return thread % threads.x;
    case Special::tid_y:
      return thread / threads.x % threads.y;
    case Special::tid_z:
      return thread / threads.x / threads.y;
    case Special::ntid_x:
      return threads.x;
    case Special::ntid_y:
      return threads.y;
    case Special::ntid_z:
      return threads.z;
    case Special::ctaid_x:
      return index.x;
    case Special::ctaid_y:
      return index.y;
    case Special::ctaid_z:
      return index.z;
    case Special::nctaid_x:
      return grid.x;
    case Special::nctaid_y:
      return grid.y;
    case Special::nctaid_z:
      return grid.z;
    case Special::laneid:
      return thread % kLanes;
  }
  return 0;
}

void Block::run(Schedule& schedule) {
  std::ranges::fill(shared, std::byte{0xff});
  std::ranges::fill(dynamic_shared, std::byte{0xff});
  const auto count = static_cast<uint32_t>((threads.count() + kLanes - 1) / kLanes);
  for (uint32_t k = 0; k < count; ++k) {
    const uint64_t rest = threads.count() - uint64_t{k} * kLanes;
    warps[k].begin(*this, rest >= kLanes ? kAllLanes : (1u << rest) - 1);
  }
  for (bool waits = true; waits;) {
    for (bool runs = true; runs;) {
      runs = false;
      for (const uint32_t k : schedule.order_of(count)) {
        warps[k].run(schedule);
        runs |= warps[k].has(Lane::State::running);
      }
    }
    // All lanes that are left have arrived (9.7.13.1).
    waits = false;
    for (uint32_t k = 0; k < count; ++k) waits |= warps[k].pass_barrier();
  }
}

Kernel::Kernel(Function& f) : f_(f) { decode(f); }

void Kernel::launch(Dim3 blocks, Dim3 threads, std::vector<std::byte> parameters, size_t dynamic) {
  block_.grid = blocks;
  block_.threads = threads;
  block_.parameters = std::move(parameters);
  block_.shared.resize(f_.shared_bytes);
  block_.dynamic_shared.resize(dynamic);
  while (block_.warps.size() * kLanes < threads.count())
    block_.warps.emplace_back(f_, static_cast<int>(block_.warps.size()));
  for (const uint32_t k : schedule().order_of(static_cast<uint32_t>(blocks.count()))) {
    block_.index = {k % blocks.x, k / blocks.x % blocks.y, k / blocks.x / blocks.y};
    block_.run(schedule());
  }
}

}  // namespace isonorm::ptx
