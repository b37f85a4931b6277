// parallel_for over blocks of an index range. Any thread may run a block. even_blocks() does not depend on the number
// of threads, so a kernel that sums inside its blocks gives the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/formulas/round_up.h"
#include "core/system/float_environment.h"

namespace isonorm {

// More threads than the cores of any machine would only take memory. A larger OMP_NUM_THREADS counts as this number.
inline constexpr int kMostThreads = 1024;

// The number of threads of a parallel_for, including the calling thread: the number that set_num_threads() set in the
// calling thread, else OMP_NUM_THREADS, else the number of cores that the process may use. Ranks of a launcher (MPI,
// srun) divide the cores of their machine. All callers share the other threads. A child of fork() starts its own
// threads; but if fork() was called inside parallel_for, the child may only end or start another program.
int num_threads();
// Sets the number for the calling thread; inside a parallel_for it takes effect afterwards. Throws unless 1 <= n <=
// kMostThreads.
void set_num_threads(int n);
int thread_index();  // of the calling thread inside a parallel_for: 0 .. num_threads() - 1

// [0, n) divided into `count` blocks of whole units, as equal as possible.
struct Partition {
  int64_t n, count, unit = 1;

  int64_t begin(int64_t b) const { return std::min(n, ceil_div(n, unit) * b / count * unit); }
};

// Blocks of at most `grain` indices, a multiple of `unit`, that divide evenly among 1, 2, 4 or 8 threads. They depend
// only on these three numbers.
inline Partition even_blocks(int64_t n, int64_t grain, int64_t unit = 1) {
  if (n <= grain) return {n, n > 0, unit};
  const int64_t count = ceil_div(n, grain);
  const int64_t even =
      count < 8 ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))) : round_up(count, 8);
  return {n, std::min(even, ceil_div(n, unit)), unit};
}

// The same number of blocks for every thread, for work whose bits do not depend on where blocks begin.
inline Partition thread_blocks(int64_t n, int64_t grain, int64_t unit = 1) {
  const int64_t threads = num_threads(), each = ceil_div(ceil_div(n, threads), grain);
  return {n, std::min(each * threads, ceil_div(n, unit)), unit};
}

namespace detail {
void parallel_blocks(int64_t count, void (*body)(const void*, int64_t), const void* closure);
}

// Calls f(begin, end) or f(begin, end, block) for each block, in the default floating-point environment. The calling
// thread does all the work if there is one block or one thread, or inside another parallel_for. Otherwise other threads
// help if they are free and the system has them: the calling thread never waits for a thread that has not begun. If a
// call of f throws, parallel_for rethrows the exception after the other threads have finished.
template <class F> void parallel_for(const Partition& blocks, const F& f) {
  if (blocks.n <= 0) return;
  const DefaultFloatEnvironment environment;  // as in the workers
  const auto call = [&](int64_t begin, int64_t end, int64_t block) {
    if constexpr (std::is_invocable_v<F, int64_t, int64_t, int64_t>)
      f(begin, end, block);
    else
      f(begin, end);
  };
  if (blocks.count == 1) return call(0, blocks.n, 0);
  const auto body = [&](int64_t b) { call(blocks.begin(b), blocks.begin(b + 1), b); };
  detail::parallel_blocks(
      blocks.count, [](const void* c, int64_t b) { (*static_cast<const decltype(body)*>(c))(b); }, &body);
}
template <class F> void parallel_for(int64_t n, int64_t grain, const F& f) { parallel_for(even_blocks(n, grain), f); }

}  // namespace isonorm
