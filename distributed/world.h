// All processes that a launcher started together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "distributed/group.h"

namespace isonorm::distributed {

// All processes that an MPI launcher (`mpirun -np 4 PROGRAM`) has started, found by environment variables; without a
// launcher, this process alone. MPI starts with the first call and ends with the process. Warns (core/system/warning.h)
// if the launcher has bound this process to fewer cores than its share of the machine.
//
// Throws if the launcher's library cannot be opened. Also throws if another launcher, such as torchrun, has set the
// environment: its processes cannot train together here, and training each separately is not intended.
Group& world();

// True if an MPI launcher has started this process together with others.
bool one_of_several();

// Returns when it is this rank's turn to print an error. A Disagreement is printed by its speaker(). Another error may
// have occurred on all ranks, so rank 0 prints it at once and the others wait for two seconds: if rank 0 prints, its
// end_all() ends them before that. Returns the beginning of the line, "rank 1 on moon: ". It is empty if the process is
// alone, and for a Disagreement, whose message names ranks already.
std::string wait_to_tell(const std::exception& e) noexcept;
// Ends all processes with this exit code. Does nothing if the process is alone.
void end_all(int code) noexcept;

// Reports an error of main(): wait_to_tell(), then the line "program: rank 2 on moon: what went wrong", then
// end_all(1). Returns 1, if it returns.
int ended_by(const std::exception& e, const char* program) noexcept;

// Threads as ranks: for tests, and for trying on one machine what many machines will do.

inline constexpr int kMostRanks = 1024;

// n threads, one per rank, that wait for run(). Each thread computes its kernels alone; their bits do not depend on the
// number of threads.
class Ranks {
 public:
  // limit: seconds that a group's call waits for another rank. Throws if n is not in [1, kMostRanks].
  explicit Ranks(int n, double limit = time_limit());
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const;
  // The group of a rank, to be used by its thread only. Negative ranks count from the end. Throws if there is no such
  // rank.
  Group& group(int rank);
  // Calls f(group) on every rank and returns when all calls have ended. If one call throws, the calls on the other
  // ranks throw, too. run() then throws the first error, with the number of its rank, and the ranks cannot be used
  // again. Throws in a child of fork(), which does not have the threads.
  void run(const std::function<void(Group&)>& f);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline void run_ranks(int n, const std::function<void(Group&)>& f, double limit = time_limit()) {
  Ranks(n, limit).run(f);
}

}  // namespace isonorm::distributed
