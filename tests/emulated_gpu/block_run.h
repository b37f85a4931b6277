// Runs the threads of one block. Each is a fiber of the calling OS thread and runs until it reaches a barrier or a warp
// operation, or ends. A seed determines which thread continues, so that a missing barrier in a kernel shows as wrong
// results. A thread that starts when another ends reuses its fiber: a kernel without barriers is one loop over its
// threads.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulated_gpu/copies.h"
#include "tests/emulated_gpu/device.h"
#include "tests/emulated_gpu/fiber.h"
#include "tests/emulated_gpu/scheduler.h"
#include "tests/emulated_gpu/shared_memory.h"

namespace isonorm::gpu::emulated {

class BlockRun {
 public:
  static BlockRun& of_this_thread();

  // Throws Fault.
  void run(const Grid& grid, uint3 block, uint64_t seed);
  // Everything that the blocks of a grid did happens before what follows. The blocks themselves are unordered.
  void finish_grid() { acquire(&end_); }

  // Called by the threads of the block.
  const Slot* meet(const char* what, unsigned mask, const void* operand, size_t bytes, Place place);
  void meet_block(const char* what, Place place);
  [[noreturn]] void fault(const char* what, const std::string& complaint, Place place);
  void* shared_bytes(const void* tag, size_t bytes, size_t alignment);
  uint32_t number() const { return current_->number; }  // of the calling thread
  SharedMemory memory;
  Copies copies;

 private:
  struct Thread {
    uint3 index;
    uint32_t number;
    Fiber* fiber;
    const char* waits_in;  // null: running, ready, or ended
    Place place;
    bool ended;
  };
  struct Meeting {
    unsigned mask = 0, arrived = 0, phase = 0;
    const char* what = nullptr;
    Place place;
    Slot slot[2][32];  // of two consecutive operations: slow lanes still read the first
  };
  struct Barrier {
    unsigned arrived = 0, phase = 0;
    const char* what = nullptr;
    Place place;
    char name[2] = {};  // for the race checker, of two consecutive barriers
  };
  // The race checker would order a thread after the thread whose fiber it reuses. Across blocks fibers are reused
  // nevertheless, because making one takes longer than running a block. So races between threads with the same number
  // in different blocks are not detected.
  static constexpr bool kOwnFibers = kRaceChecks;
  static constexpr int kMasks = 8;  // different masks of one warp at a time

  BlockRun() { adopt_thread(host_); }
  ~BlockRun();

  static void entry();
  void thread_loop();
  void begin_block(uint64_t seed);
  std::string complaint_at_end() const;
  std::string waiting() const;

  Thread* take_next();
  void make_ready(Thread& t);
  void enter(Thread& t);
  void wait();  // the current thread stops, and continues when it is ready and selected
  void wait_in(const char* what, Place place);
  Meeting& meeting(uint32_t warp, unsigned mask);
  Fiber* take_fiber();
  Fiber* new_fiber();

  const Grid* grid_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<uint32_t> ready_;
  std::vector<std::array<Meeting, kMasks>> warps_;
  Barrier barrier_;
  Thread* current_ = nullptr;
  uint32_t ended_ = 0;
  uint64_t random_ = 1;
  bool ordered_ = false, bursts_ = false;
  std::string complaint_;
  Fiber host_;
  char start_ = 0, end_ = 0;  // objects that represent these points to the race checker
  std::vector<Fiber*> idle_, finished_;
  std::vector<std::unique_ptr<Fiber>> made_;
};

}  // namespace isonorm::gpu::emulated
