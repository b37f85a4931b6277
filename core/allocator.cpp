#include "core/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "core/error.h"
#include "core/pool.h"

namespace isonorm {

// Classes are 64 bytes, then four steps to every power of two: a block wastes at most a quarter of itself.
int Allocator::size_class(int64_t bytes) {
  const uint64_t units = static_cast<uint64_t>(bytes + 63) / 64;
  if (units <= 4) return static_cast<int>(units) - 1;
  const int top = 63 - std::countl_zero(units - 1);  // units - 1 has its highest bit here; top >= 2
  const uint64_t step = (units - 1) >> (top - 2);    // 4..7
  return 4 * (top - 1) + static_cast<int>(step - 4);
}

int64_t Allocator::class_bytes(int size_class) {
  if (size_class < 4) return 64 * (size_class + 1);
  const int top = size_class / 4 + 1;
  return static_cast<int64_t>(64 * ((uint64_t(size_class % 4) + 5) << (top - 2)));
}

void* Allocator::allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  check(bytes > 0 && bytes < (int64_t{1} << 47), "allocate: ", bytes, " bytes is not a possible size");
  const int c = size_class(bytes);
  const int64_t rounded = class_bytes(c);
  std::lock_guard lock(mutex_);
  void* block = nullptr;
  if (!free_[c].empty()) {
    block = free_[c].back();
    free_[c].pop_back();
    stats_.cached -= rounded;
  } else {
    free_[c].reserve(free_[c].capacity() + 1);  // so that release() never allocates
    block = source_allocate(rounded, alignment_);
    if (!block) {
      for (int i = 0; i < 256; ++i) {
        for (void* b : free_[i]) source_release(b), stats_.cached -= class_bytes(i);
        free_[i].clear();
      }
      block = source_allocate(rounded, alignment_);
    }
    check(block != nullptr, "allocate: out of memory: ", rounded, " bytes asked for, ", stats_.current, " in use");
    ++stats_.requests;
  }
  stats_.current += rounded;
  stats_.peak = std::max(stats_.peak, stats_.current);
  return block;
}

void Allocator::release(void* block, int64_t bytes) noexcept {
  if (!block) return;
  const int c = size_class(bytes);
  std::lock_guard lock(mutex_);
  stats_.current -= class_bytes(c);
  stats_.cached += class_bytes(c);
  free_[c].push_back(block);
}

void Allocator::empty_cache() noexcept {
  std::lock_guard lock(mutex_);
  for (auto& list : free_) {
    for (void* b : list) source_release(b);
    list.clear();
  }
  stats_.cached = 0;
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak = stats_.current;
}

namespace {
class HostAllocator final : public Allocator {
 public:
  HostAllocator() : Allocator(64) {}

  void* allocate(int64_t bytes) override { return is_small(bytes) ? pool::take(bytes) : Allocator::allocate(bytes); }
  void release(void* block, int64_t bytes) noexcept override {
    is_small(bytes) ? pool::give(block, bytes) : Allocator::release(block, bytes);
  }

 private:
  static bool is_small(int64_t bytes) { return bytes > 0 && bytes <= int64_t{pool::kLargest}; }

  // Large blocks ask for huge pages: a product reads rows on many pages at once, and translating their addresses costs.
  void* source_allocate(int64_t bytes, size_t alignment) noexcept override {
    constexpr int64_t huge = int64_t{2} << 20;
    if (bytes < huge) return std::aligned_alloc(alignment, static_cast<size_t>(bytes));
    void* block = std::aligned_alloc(huge, static_cast<size_t>((bytes + huge - 1) / huge * huge));
#ifdef __linux__
    if (block) madvise(block, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a wish: what it answers does not matter
#endif
    return block;
  }
  void source_release(void* block) noexcept override { std::free(block); }
};
}  // namespace

Allocator& host_allocator() {
  static Allocator* allocator = new HostAllocator;
  return *allocator;
}

}  // namespace isonorm
