#include "core/system/parallel.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <exception>

#include "core/error.h"

namespace isonorm {

namespace {

bool forked = false;  // in a child of fork(): OpenMP would wait for threads that only the parent has

void end_of_threads() {
  set_num_threads(1);
  forked = true;
}

}  // namespace

int num_threads() { return std::min(omp_get_max_threads(), kMostThreads); }

void set_num_threads(int n) {
  check(n >= 1 && n <= kMostThreads, "set_num_threads: ", n, " threads asked for, expected 1 to ", kMostThreads);
  check(n == 1 || !forked, "set_num_threads: ", n,
        " threads asked for in a child of fork(), whose parent has the threads: expected 1");
  omp_set_num_threads(n);
  openblas_set_num_threads(n);
}

int thread_index() { return omp_get_thread_num(); }

namespace {

// What is left of the chunks that a thread shall do: it takes them from the first on, who helps it from the last.
class alignas(64) Share {
 public:
  void set(int64_t begin, int64_t end) { left_ = word(static_cast<uint64_t>(begin), static_cast<uint64_t>(end)); }

  int64_t take(bool first) {  // -1: nothing is left
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (true) {
      const uint64_t begin = left >> 32, end = left & 0xffffffff;
      if (begin == end) return -1;
      if (left_.compare_exchange_weak(left, first ? word(begin + 1, end) : word(begin, end - 1)))
        return static_cast<int64_t>(first ? begin : end - 1);
    }
  }

 private:
  static uint64_t word(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  std::atomic<uint64_t> left_;
};

}  // namespace

namespace detail {

// Each thread has a share of the blocks, the same one in every region of a size, so that it meets what it left in its
// cache. Where a core is slow, or busy elsewhere for a while, the others take over the rest of its share.
void parallel_blocks(int64_t count, void (*body)(const void*, int64_t), const void* closure) {
  const int threads = num_threads();
  if (omp_in_parallel() || threads == 1) {
    for (int64_t b = 0; b < count; ++b) body(closure, b);
    return;
  }
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, end_of_threads);
  constexpr int most = 64, per_thread = 8;
  const int shares = std::min(threads, most);
  const int64_t chunk = std::max<int64_t>(1, count / (per_thread * shares)), chunks = ceil_div(count, chunk);
  Share left[most];
  for (int s = 0; s < shares; ++s) left[s].set(chunks * s / shares, chunks * (s + 1) / shares);
  std::exception_ptr first;  // none may leave the region
#pragma omp parallel num_threads(threads)
  for (int i = 0; i < shares; ++i) {
    Share& share = left[(omp_get_thread_num() + i) % shares];
    for (int64_t c = share.take(i == 0); c >= 0; c = share.take(i == 0))
      for (int64_t b = c * chunk; b < std::min(count, (c + 1) * chunk); ++b) {
        try {
          body(closure, b);
        } catch (...) {
#pragma omp critical(isonorm_parallel_blocks)
          if (!first) first = std::current_exception();
        }
      }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace detail
}  // namespace isonorm
