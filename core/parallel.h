// parallel_for over fixed blocks of an index range. Which thread runs a block is open; where the blocks begin is not,
// so a kernel that keeps its sums inside blocks gives the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace isonorm {

int num_threads();
// Sets the number of threads of kernels and of BLAS. Throws where n < 1.
void set_num_threads(int n);
int thread_index();  // of the calling thread inside parallel_for: 0 .. num_threads() - 1

namespace detail {
void parallel_blocks(int64_t blocks, void (*body)(const void*, int64_t), const void* closure);
}

// Calls f(begin, end) for consecutive ranges of at most `grain` indices that cover [0, n). Runs in the calling thread
// where there is one block, one thread, or a parallel region already. f must not throw.
template <class F> void parallel_for(int64_t n, int64_t grain, const F& f) {
  if (n <= 0) return;
  const int64_t blocks = (n + grain - 1) / grain;
  if (blocks == 1) return f(int64_t{0}, n);
  const auto body = [&](int64_t b) { f(b * grain, std::min(n, (b + 1) * grain)); };
  detail::parallel_blocks(
      blocks, [](const void* c, int64_t b) { (*static_cast<const decltype(body)*>(c))(b); }, &body);
}

// A grain of at most `most`, and blocks as equal as can be for 1, 2, 4 or 8 threads. It depends on n alone: where the
// blocks begin stays the same for any number of threads.
inline int64_t even_grain(int64_t n, int64_t most) {
  const int64_t blocks = (n + most - 1) / most, even = blocks > 1 ? (blocks + 7) / 8 * 8 : 1;
  return std::max<int64_t>(1, (n + even - 1) / even);
}

}  // namespace isonorm
