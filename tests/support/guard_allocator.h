// An allocator that detects wrong use of memory by ops. Blocks are filled with 0xff (NaN, -1), so that reading an
// unwritten element shows in the result. Guard bytes around a block are checked when it is released.
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
  // The host address of the memory at an address of this allocator.
  virtual unsigned char* reachable(void* address) const { return static_cast<unsigned char*>(address); }

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override;
  void source_release(void* block) noexcept override;
};

// From now on all CPU tensors use guarded memory.
void guard_host_memory();
// Number of released blocks that had been written beyond an end.
int64_t damaged_blocks();

}  // namespace isonorm::test
