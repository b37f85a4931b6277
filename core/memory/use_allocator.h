// Where memory of a GPU comes from, for a while and one thread.
#pragma once

#include "core/device.h"

namespace isonorm {

class Allocator;

// While it lives, memory of a GPU that the calling thread asks for comes from this allocator, which outlives whatever it
// gave.
class UseAllocator {
 public:
  [[nodiscard]] UseAllocator(Device device, Allocator& allocator);
  ~UseAllocator();
  UseAllocator(const UseAllocator&) = delete;
  UseAllocator& operator=(const UseAllocator&) = delete;

  // Of the calling thread and a device, the innermost one's; null where there is none.
  static Allocator* of(Device device);

 private:
  const Device device_;
  Allocator& allocator_;
  const UseAllocator* outer_;
};

}  // namespace isonorm
