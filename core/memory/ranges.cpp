#include "core/memory/ranges.h"

#include <algorithm>

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
