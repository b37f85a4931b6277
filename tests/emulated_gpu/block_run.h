// Runs the threads of one block. Each is a fiber of the calling OS thread; it runs until it meets others (a barrier, a
// shuffle) or ends. Who goes on is drawn by seed, so that what a kernel forgot to wait for is found in wrong numbers. A
// thread that starts where another ended takes over its fiber: a kernel without barriers is one loop over its threads.
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
  // What the blocks of a grid did lies before what comes now; among themselves they have no order.
  void finish_grid() { acquire(&end_); }

  // What threads of the block call.
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
    const char* waits_in;  // null: it runs, can run, or has ended
    Place place;
    bool ended;
  };
  struct Meeting {
    unsigned mask = 0, arrived = 0, phase = 0;
    const char* what = nullptr;
    Place place;
    Slot slot[2][32];  // of two meetings in a row: who is slow still reads the first
  };
  struct Barrier {
    unsigned arrived = 0, phase = 0;
    const char* what = nullptr;
    Place place;
    char name[2] = {};  // for the race checker, of two meetings in a row
  };
  // To the race checker a thread that took over another's fiber would be ordered after it. Over blocks fibers are
  // reused all the same (to make one takes longer than a block): a race between threads of one number is not seen.
  static constexpr bool kOwnFibers = kRaceChecks;
  static constexpr int kMasks = 8;  // of one warp at a time

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
  void wait();  // the current thread stops here, and goes on when it is ready and drawn
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
  char start_ = 0, end_ = 0;  // names for the race checker
  std::vector<Fiber*> idle_, finished_;
  std::vector<std::unique_ptr<Fiber>> made_;
};

}  // namespace isonorm::gpu::emulated
