// Chooses the allocator of a GPU for one thread, for a while.
#pragma once

#include "core/device.h"

namespace isonorm {

class Allocator;

// While it lives, GPU memory that the calling thread asks for comes from this allocator. The allocator must outlive all
// its blocks.
class UseAllocator {
 public:
  [[nodiscard]] UseAllocator(Device device, Allocator& allocator);
  ~UseAllocator();
  UseAllocator(const UseAllocator&) = delete;
  UseAllocator& operator=(const UseAllocator&) = delete;

  // The innermost allocator of the calling thread for this device; null if there is none.
  static Allocator* of(Device device);

 private:
  const Device device_;
  Allocator& allocator_;
  const UseAllocator* outer_;
};

}  // namespace isonorm
