#include "core/memory/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "core/error.h"
#include "core/formulas/round_up.h"
#include "core/memory/pool.h"

namespace isonorm {

namespace {

// Blocks of at least this size are parts of segments. Under AddressSanitizer no block is, so that it sees where each
// one ends.
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kLarge = int64_t{1} << 48;
#else
constexpr int64_t kLarge = int64_t{256} << 10;
#endif

// Size classes: 64, 128, 192 and 256 bytes, then four for every power of two. A block wastes at most a quarter of its
// size.
int size_class(int64_t bytes) {
  const uint64_t units = static_cast<uint64_t>(bytes + 63) / 64;
  if (units <= 4) return static_cast<int>(units) - 1;
  const int top = 63 - std::countl_zero(units - 1);  // the highest bit of units - 1; top >= 2
  const uint64_t step = (units - 1) >> (top - 2);    // 4..7
  return 4 * (top - 1) + static_cast<int>(step - 4);
}

int64_t class_bytes(int size_class) {
  if (size_class < 4) return 64 * (size_class + 1);
  const int top = size_class / 4 + 1;
  return static_cast<int64_t>(64 * ((uint64_t(size_class % 4) + 5) << (top - 2)));
}

}  // namespace

void* Allocator::allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  check(bytes > 0 && bytes < (int64_t{1} << 47), "allocate: ", bytes, " bytes is not a possible size");
  std::lock_guard lock(mutex_);
  void* block = bytes < kLarge ? take_small(size_class(bytes)) : take_large(round_up(bytes, alignment_));
  if (!block)
    raise(ErrorKind::memory, text("allocate: out of memory: ", bytes, " bytes asked for, ", in_use(), " in use"),
          __FILE__, __LINE__);
  peak_ = std::max(peak_, in_use());
  return block;
}

void* Allocator::take_small(int c) {
  void* block = nullptr;
  if (free_[c].empty()) {
    free_[c].reserve(free_[c].capacity() + 1);  // so that release() never allocates
    block = from_source(class_bytes(c));
    if (!block) return nullptr;
    ++requests_;
  } else {
    block = free_[c].back();
    free_[c].pop_back();
    small_cached_ -= class_bytes(c);
  }
  small_ += class_bytes(c);
  return block;
}

void* Allocator::take_large(int64_t bytes) {
  const int64_t touched = large_.touched();
  void* block = large_.take(bytes);
  if (!block) {
    int64_t size = std::max(bytes, segment_);
    void* segment = source_allocate(size, alignment_);
    if (!segment) segment = from_source(size = bytes);
    if (!segment) return nullptr;
    large_.add(segment, size);
    block = large_.take(bytes);
  }
  if (large_.touched() != touched) ++requests_;
  return block;
}

// If the source has no memory left and takes blocks back, returns the cached memory to it and asks again.
void* Allocator::from_source(int64_t bytes) {
  if (void* block = source_allocate(bytes, alignment_)) return block;
  if (!source_takes_back()) return nullptr;
  empty();
  return source_allocate(bytes, alignment_);
}

void Allocator::release(void* block, int64_t bytes) noexcept {
  if (!block) return;
  std::lock_guard lock(mutex_);
  if (bytes >= kLarge) return large_.give(block);
  const int c = size_class(bytes);
  small_ -= class_bytes(c);
  small_cached_ += class_bytes(c);
  free_[c].push_back(block);
}

void Allocator::empty() noexcept {
  for (auto& list : free_) {
    for (void* b : list) source_release(b);
    list.clear();
  }
  small_cached_ = 0;
  large_.empty([this](void* p, int64_t bytes) { source_discard(p, bytes); }, [this](void* p) { source_release(p); });
}

void Allocator::empty_cache() noexcept {
  std::lock_guard lock(mutex_);
  empty();
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return {in_use(), peak_, small_cached_ + large_.touched() - large_.busy(), requests_};
}

void Allocator::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = in_use();
}

namespace {
class HostAllocator final : public Allocator {
 public:
  HostAllocator() : Allocator(64, int64_t{1} << 30) {}

  void* allocate(int64_t bytes) override { return is_small(bytes) ? pool::take(bytes) : Allocator::allocate(bytes); }
  void release(void* block, int64_t bytes) noexcept override {
    is_small(bytes) ? pool::give(block, bytes) : Allocator::release(block, bytes);
  }

 private:
  static constexpr int64_t kHugePage = int64_t{2} << 20;

  static bool is_small(int64_t bytes) { return bytes > 0 && bytes <= int64_t{pool::kLargest}; }

  // Segments ask for huge pages: a product reads rows on many pages at once, and address translation is expensive.
  // Memory that is not touched is not occupied.
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override {
    const int64_t unit = bytes < kLarge ? alignment : kHugePage;
    void* block = std::aligned_alloc(static_cast<size_t>(unit), static_cast<size_t>(round_up(bytes, unit)));
#ifdef __linux__
    if (block && unit == kHugePage)
      madvise(block, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint: failure does not matter
#endif
    return block;
  }
  void source_release(void* block) noexcept override { std::free(block); }
  void source_discard([[maybe_unused]] void* begin, [[maybe_unused]] int64_t bytes) noexcept override {
#ifdef __linux__
    const int64_t page = sysconf(_SC_PAGESIZE);  // up to 64 KB on ARM
    const int64_t skip = -reinterpret_cast<intptr_t>(begin) & (page - 1), whole = (bytes - skip) & -page;
    if (whole > 0) madvise(static_cast<std::byte*>(begin) + skip, static_cast<size_t>(whole), MADV_DONTNEED);
#endif
  }
};
}  // namespace

Allocator& host_allocator() {
  static Allocator* allocator = new HostAllocator;
  return *allocator;
}

}  // namespace isonorm

namespace isonorm {

Ranges::At Ranges::at(void* begin) {
  return std::lower_bound(ranges_.begin(), ranges_.end(), static_cast<std::byte*>(begin),
                          [](const Range& r, const std::byte* address) { return r.begin < address; });
}

bool Ranges::joins_next(At r) {
  const At next = r + 1;
  return next != ranges_.end() && !next->first && next->state == r->state;
}

void Ranges::absorb_next(At r) {
  r->bytes += (r + 1)->bytes;
  ranges_.erase(r + 1);
}

void Ranges::add(void* segment, int64_t bytes) {
  ranges_.insert(at(segment), {static_cast<std::byte*>(segment), bytes, State::fresh, true});
}

void* Ranges::take(int64_t bytes) {
  At best = ranges_.end();
  for (At r = ranges_.begin(); r != ranges_.end(); ++r)
    if (r->state == State::free && r->bytes >= bytes && (best == ranges_.end() || r->bytes < best->bytes)) best = r;
  if (best == ranges_.end()) return take_fresh(bytes);
  if (best->bytes > bytes) {
    best = ranges_.insert(best + 1, {best->begin + bytes, best->bytes - bytes, State::free, false}) - 1;
    best->bytes = bytes;
  }
  best->state = State::busy;
  busy_ += bytes;
  return best->begin;
}

// Takes a block from a fresh range and from the free range before it, if both are in one segment.
void* Ranges::take_fresh(int64_t bytes) {
  for (At r = ranges_.begin(); r != ranges_.end(); ++r) {
    if (r->state != State::fresh) continue;
    const bool free_before = !r->first && (r - 1)->state == State::free;
    const int64_t used = free_before ? (r - 1)->bytes : 0;
    if (used + r->bytes < bytes) continue;
    if (!free_before) {
      r = ranges_.insert(r, {r->begin, 0, State::free, r->first}) + 1;
      r->first = false;
    }
    const At block = r - 1;
    block->bytes = bytes;
    block->state = State::busy;
    r->begin = block->begin + bytes;
    r->bytes -= bytes - used;
    busy_ += bytes;
    touched_ += bytes - used;
    void* const begin = block->begin;
    if (r->bytes == 0) ranges_.erase(r);
    return begin;
  }
  return nullptr;
}

void Ranges::give(void* block) noexcept {
  const At r = at(block);
  busy_ -= r->bytes;
  r->state = State::free;
  if (joins_next(r)) absorb_next(r);
  if (r != ranges_.begin() && joins_next(r - 1)) absorb_next(r - 1);
}

void Ranges::empty(const std::function<void(void*, int64_t)>& discard,
                   const std::function<void(void*)>& release) noexcept {
  for (Range& r : ranges_) {
    if (r.state != State::free) continue;
    discard(r.begin, r.bytes);
    touched_ -= r.bytes;
    r.state = State::fresh;
  }
  for (At r = ranges_.begin(); r != ranges_.end();) {
    while (r->state == State::fresh && joins_next(r)) absorb_next(r);
    const bool whole = r->first && (r + 1 == ranges_.end() || (r + 1)->first);
    if (r->state == State::fresh && whole) {
      release(r->begin);
      r = ranges_.erase(r);
    } else {
      ++r;
    }
  }
}

}  // namespace isonorm
