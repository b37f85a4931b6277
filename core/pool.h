// Small blocks of memory from free lists that each thread has for itself. What an op is recorded with (tensors,
// storage, small data, nodes) comes and goes a thousand times a step: neither a lock nor a search stands between it and
// memory.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace isonorm::pool {

inline constexpr size_t kLargest = 512;  // bytes; a larger block comes from operator new and goes back there

// A block of at least `bytes` > 0 bytes, aligned to 64. Throws std::bad_alloc where memory is out.
void* take(size_t bytes);
// Gives a block back, from any thread, naming as many bytes as were asked for.
void give(void* block, size_t bytes) noexcept;

// The allocator of the standard's interface.
template <class T> struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U> Allocator(const Allocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(take(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { give(p, n * sizeof(T)); }
  bool operator==(const Allocator&) const { return true; }
};

// std::make_shared whose block is one of the pool's.
template <class T, class... A> std::shared_ptr<T> make_shared(A&&... arguments) {
  return std::allocate_shared<T>(Allocator<T>(), std::forward<A>(arguments)...);
}

}  // namespace isonorm::pool
