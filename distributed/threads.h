// Threads of one process as ranks: for tests, and to try on one machine what many will do.
#pragma once

#include <functional>

#include "distributed/group.h"

namespace isonorm::distributed {

// Calls f(group) on n threads, one a rank. What one throws ends the others, whose calls throw, too; run_ranks() throws the first
// of them, with the number of its rank, when all have ended. `limit`: seconds that a call waits for a rank. Each rank uses one
// thread for its kernels, whose bits do not depend on that. Throws where n is not in [1, kMostRanks].
void run_ranks(int n, const std::function<void(Group&)>& f, double limit = time_limit());
inline constexpr int kMostRanks = 1024;

}  // namespace isonorm::distributed
