// Small blocks of memory from free lists, which every thread has for itself. Recording an op creates and frees tensors,
// storage, small data and nodes a thousand times per step; this takes neither a lock nor a search.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace isonorm::pool {

inline constexpr size_t kLargest = 512;  // bytes; a larger block comes from operator new and returns there

namespace detail {
inline constexpr size_t kUnit = 64;  // sizes are rounded up to multiples of a cache line

struct Block {
  Block* next;
};
struct List {
  Block* first = nullptr;
  int room = 0;  // number of blocks that may still be put in
};
inline constinit thread_local List lists[kLargest / kUnit];  // trivial type, so usable until the thread is gone

inline List& list_of(size_t bytes) { return lists[(bytes + kUnit - 1) / kUnit - 1]; }
void* from_system(size_t bytes);
void to_system(void* block) noexcept;
}  // namespace detail

// A block of at least `bytes` > 0 bytes, aligned to 64. Throws std::bad_alloc if memory runs out.
inline void* take(size_t bytes) {
  if (bytes > kLargest) return detail::from_system(bytes);
  detail::List& list = detail::list_of(bytes);
  detail::Block* block = list.first;
  if (!block) [[unlikely]]
    return detail::from_system(bytes);
  list.first = block->next;
  ++list.room;
  return block;
}
// Frees a block, from any thread. `bytes` must be the number that was asked for.
inline void give(void* block, size_t bytes) noexcept {
  if (bytes > kLargest) return detail::to_system(block);
  detail::List& list = detail::list_of(bytes);
  if (list.room == 0) [[unlikely]]
    return detail::to_system(block);
  list.first = new (block) detail::Block{list.first};
  --list.room;
}

// A standard allocator over the pool.
template <class T> struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U> Allocator(const Allocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(take(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { give(p, n * sizeof(T)); }
  bool operator==(const Allocator&) const { return true; }
};

// std::make_shared with a block from the pool.
template <class T, class... A> std::shared_ptr<T> make_shared(A&&... arguments) {
  return std::allocate_shared<T>(Allocator<T>(), std::forward<A>(arguments)...);
}

}  // namespace isonorm::pool
