// Asynchronous copies to shared memory (cp.async, tensor_core.h) that threads of a block have begun and not yet waited
// for: one ring for each thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/emulated_gpu/device.h"

namespace isonorm::gpu::emulated {

struct Copy {
  void* to;
  uint32_t group;
  Place place;
  std::byte bytes[16];
};

class Copies {
 public:
  static constexpr uint32_t kMost = 128;  // per thread

  void begin_block() { queues_.fill({}); }
  bool begin(uint32_t thread, const Copy& copy) {  // false if there are too many
    Queue& q = queues_[thread];
    if (q.begun - q.done == kMost) return false;
    Copy& to = at(thread, q.begun++);
    to = copy;
    to.group = q.groups;
    return true;
  }
  void commit(uint32_t thread) { ++queues_[thread].groups; }
  // Takes the oldest copy that must finish before a thread that allows `groups_left` pending groups continues. False if
  // there is none.
  bool take(uint32_t thread, uint32_t groups_left, Copy& copy) {
    Queue& q = queues_[thread];
    if (q.done == q.begun || at(thread, q.done).group + groups_left >= q.groups) return false;
    copy = at(thread, q.done++);
    return true;
  }
  const Copy* oldest(uint32_t thread) {
    const Queue& q = queues_[thread];
    return q.done == q.begun ? nullptr : &at(thread, q.done);
  }

 private:
  struct Queue {
    uint32_t begun = 0, done = 0, groups = 0;  // counted since the block began
  };
  Copy& at(uint32_t thread, uint32_t k) { return ring_[size_t{thread} * kMost + k % kMost]; }

  std::array<Queue, 1024> queues_{};
  std::unique_ptr<Copy[]> ring_{new Copy[size_t{1024} * kMost]};
};

}  // namespace isonorm::gpu::emulated
