// Asynchronous copies to shared memory (9.7.9.25). A copy takes place in the wait for its group, as late as a device
// may do it, so a read before this wait gives garbage.
#pragma once

#include <cstdint>
#include <deque>

namespace isonorm::ptx {

struct AsyncCopy {
  uint64_t to, from;
  uint32_t bytes, valid;  // the bytes from `valid` on become zeros
  uint32_t group;
};

struct AsyncCopies {
  std::deque<AsyncCopy> begun;
  uint32_t groups = 0;  // number of committed groups
};

}  // namespace isonorm::ptx
