#include "core/system/parallel.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/cores.h"
#include "core/system/workers.h"

namespace isonorm {

namespace {

// The first number in OMP_NUM_THREADS, which is a list and may contain spaces. If there is none, the number of threads
// for this process's share of the cores.
int default_threads() {
  const char* wish = std::getenv("OMP_NUM_THREADS");
  std::string_view first(wish ? wish : "");
  first = first.substr(0, first.find(','));
  while (first.starts_with(' ')) first.remove_prefix(1);
  while (first.ends_with(' ')) first.remove_suffix(1);
  int n = 0;
  return std::min(read_number(first, n) && n >= 1 ? n : core_use().threads, kMostThreads);
}

// State of the calling thread: the number that it passed to set_num_threads(), and, inside a region, the region's
// number of threads and this thread's index.
struct Here {
  int told = 0, region = 0, index = 0;
};
thread_local Here here;

}  // namespace

int num_threads() {
  static const int by_default = default_threads();
  return here.region ? here.region : here.told ? here.told : by_default;
}

void set_num_threads(int n) {
  check(n >= 1 && n <= kMostThreads, "set_num_threads: ", n, " threads asked for, expected 1 to ", kMostThreads);
  here.told = n;
  retry_refused_workers();
}

int thread_index() { return here.index; }

namespace {

// The chunks of a thread's share that nobody has taken yet. The thread takes them from the front, helpers from the
// back.
class alignas(64) Share {
 public:
  void set(int64_t begin, int64_t end) { left_ = word(static_cast<uint64_t>(begin), static_cast<uint64_t>(end)); }

  int64_t take(bool first) {  // -1: no chunk is left
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

// A parallel region: the shares of its threads.
class Region {
 public:
  Region(int64_t count, int threads, void (*body)(const void*, int64_t), const void* closure)
      : count_(count), threads_(threads), shares_(std::min(threads, kMostShares)), body_(body), closure_(closure) {
    constexpr int per_thread = 8;
    chunk_ = std::max<int64_t>(1, count / (per_thread * shares_));
    const int64_t chunks = ceil_div(count, chunk_);
    for (int s = 0; s < shares_; ++s) left_[s].set(chunks * s / shares_, chunks * (s + 1) / shares_);
  }

  // Each thread has a share of the blocks. It has the same share in every region of a size, so it finds its own data in
  // its cache. If a core is slow or busy with other work, the other threads take over the rest of its share.
  void work(int index) {
    here.region = threads_, here.index = index;
    for (int i = 0; i < shares_; ++i) {
      Share& share = left_[(index + i) % shares_];
      for (int64_t c = share.take(i == 0); c >= 0; c = share.take(i == 0))
        for (int64_t b = c * chunk_; b < std::min(count_, (c + 1) * chunk_); ++b) run(b);
    }
    here.region = here.index = 0;
  }

  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  void run(int64_t block) {
    try {
      body_(closure_, block);
    } catch (...) {  // exceptions must not leave the thread
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }

  static constexpr int kMostShares = 64;
  int64_t count_, chunk_;
  int threads_, shares_;
  void (*body_)(const void*, int64_t);
  const void* closure_;
  Share left_[kMostShares];
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

namespace detail {

void parallel_blocks(int64_t count, void (*body)(const void*, int64_t), const void* closure) {
  const int threads = num_threads();
  if (here.region || threads == 1) {
    for (int64_t b = 0; b < count; ++b) body(closure, b);
    return;
  }
  Region region(count, threads, body, closure);
  {
    const Helpers helpers(
        static_cast<int>(std::min<int64_t>(threads, count)) - 1, threads - 1,
        [](void* r, int index) { static_cast<Region*>(r)->work(index); }, &region);
    region.work(0);
  }
  region.rethrow();
}

}  // namespace detail
}  // namespace isonorm
