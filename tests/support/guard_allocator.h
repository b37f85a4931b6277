// An allocator that catches what ops do wrong with memory: every block is filled with 0xff (NaN, -1), so that reading
// an element never written shows in the result, and stands between guard bytes that are compared when it is released.
#pragma once

#include "core/memory/allocator.h"

namespace isonorm::test {

class GuardAllocator : public Allocator {
 public:
  GuardAllocator() : Allocator(64, 0) {}
  void* allocate(int64_t bytes) override;
  void release(void* block, int64_t bytes) noexcept override;

 protected:
  GuardAllocator(int64_t alignment) : Allocator(alignment, 0) {}
  // Where the host reads and writes what lies at an address of this allocator.
  virtual unsigned char* reachable(void* address) const { return static_cast<unsigned char*>(address); }

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override;
  void source_release(void* block) noexcept override;
};

// Serves all CPU tensors from now on with guarded memory.
void guard_host_memory();
// How many blocks that were released had been written beyond an end.
int64_t damaged_blocks();

}  // namespace isonorm::test
