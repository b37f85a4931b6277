#include "tests/support/guard_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/memory/storage.h"

namespace isonorm::test {
namespace {

constexpr int64_t kGuard = 64;
constexpr unsigned char kMark = 0xa5;
std::atomic<int64_t> damaged{0};

}  // namespace

void* GuardAllocator::allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  unsigned char *block = static_cast<unsigned char*>(Allocator::allocate(bytes + 2 * kGuard)), *p = reachable(block);
  std::memset(p, kMark, kGuard);
  std::memset(p + kGuard, 0xff, static_cast<size_t>(bytes));
  std::memset(p + kGuard + bytes, kMark, kGuard);
  return block + kGuard;
}

void GuardAllocator::release(void* block, int64_t bytes) noexcept {
  if (!block) return;
  unsigned char *from = static_cast<unsigned char*>(block) - kGuard, *p = reachable(from);
  const auto marked = [](unsigned char c) { return c == kMark; };
  if (!std::all_of(p, p + kGuard, marked) || !std::all_of(p + kGuard + bytes, p + 2 * kGuard + bytes, marked))
    ++damaged;
  Allocator::release(from, bytes + 2 * kGuard);
}

void* GuardAllocator::source_allocate(int64_t bytes, int64_t alignment) noexcept {
  return std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(bytes));
}

void GuardAllocator::source_release(void* block) noexcept { std::free(block); }

void guard_host_memory() {
  static GuardAllocator* allocator =
      new GuardAllocator;  // lives until the process ends, like the tensors of static objects
  bind_allocator(kCpu, allocator);
}

int64_t damaged_blocks() { return damaged; }

}  // namespace isonorm::test
