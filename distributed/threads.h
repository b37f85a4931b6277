// Threads of one process as ranks: for tests, and for trying on one machine what many machines will do.
#pragma once

#include <functional>
#include <memory>

#include "distributed/group.h"

namespace isonorm::distributed {

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
