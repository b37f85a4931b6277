// 32 lanes that execute a function, each at a position of its own. Lanes at the same position execute together.
#pragma once

#include <array>

#include "tests/ptx/async_copies.h"
#include "tests/ptx/program.h"

namespace isonorm::ptx {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = ~0u;

struct Block;
class Schedule;

struct Lane {
  enum class State : uint8_t { running, at_barrier, converging, ended };
  int at = 0;  // the next instruction, or the instruction in which it waits
  State state = State::ended;
};

struct Warp {
  Warp(const Function& function, int number);
  uint64_t* row(int reg) { return registers.data() + static_cast<size_t>(reg) * kLanes; }

  // Begins a block with these lanes. Registers and frames are not cleared: they hold garbage, later another block's
  // values.
  void begin(Block& block, uint32_t lanes);
  // Executes until all lanes have ended or wait for other warps, or the schedule interrupts the warp. Throws Fault.
  void run(Schedule& schedule);
  // Call it when no lane of the block is running: lanes that wait in a barrier continue. Returns false if no lane
  // waits. Throws Fault if the lanes wait in different barriers (9.7.13.1: aligned), or for lanes of their own warp.
  bool pass_barrier();
  bool has(Lane::State state) const;
  uint32_t in_state(Lane::State state) const;

  const Function* function;
  int number;  // within its block
  Block* block = nullptr;
  std::vector<uint64_t> registers;  // for each register a row of kLanes words
  std::vector<std::byte> frames;    // one frame after another, by lane
  std::array<Lane, kLanes> lanes{};
  std::array<AsyncCopies, kLanes> copies;

 private:
  struct Group {
    uint32_t lanes = 0;
    int at = 0;
    int meets_at = -1;  // the next position at which other lanes wait for their turn; -1: none
  };
  Group next_group(Schedule& schedule) const;
  uint32_t guarded(const Instruction& in, uint32_t lanes);
  void move(uint32_t lanes, int at);
  void stop(uint32_t lanes, Lane::State state);
  bool step(Group& g);
  bool converge(const Instruction& in, Group& g, uint32_t active);
};

[[noreturn]] void fault(const Warp& w, const Instruction& in, int lane, Fault::Kind kind, const std::string& why);

}  // namespace isonorm::ptx
