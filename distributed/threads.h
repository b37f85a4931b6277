// Threads of one process as ranks: for tests, and to try on one machine what many will do.
#pragma once

#include <functional>
#include <memory>

#include "distributed/group.h"

namespace isonorm::distributed {

inline constexpr int kMostRanks = 1024;

// n threads, one a rank, that wait for what they are to do. Each uses one thread for its kernels, whose bits do not depend on that.
class Ranks {
 public:
  // limit: seconds that a call of a group waits for a rank. Throws where n is not in [1, kMostRanks].
  explicit Ranks(int n, double limit = time_limit());
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const;
  // The group of a rank, for its thread; ranks count from the end if negative. Throws if there is no such rank.
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
