// Memory of a device that the host may not touch: a file in memory, mapped twice. Tensors have the addresses of a
// mapping that allows nothing; transfers and guard bytes go through the other.
#pragma once

#include <map>

#include "tests/support/guard_allocator.h"

namespace isonorm {
class Tensor;
}

namespace isonorm::test {

class AliasMemory final : public GuardAllocator {
 public:
  AliasMemory();
  unsigned char* reachable(void* address) const override;

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override;
  void source_release(void* block) noexcept override;

  unsigned char *device_, *alias_;
  int64_t used_ = 0;
  std::multimap<int64_t, void*> unused_;  // by size
  std::map<void*, int64_t> sizes_;
};

// kernels::transfer of such memory.
void alias_transfer(const Tensor& dst, const Tensor& src);

}  // namespace isonorm::test
