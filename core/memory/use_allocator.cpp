#include "core/memory/use_allocator.h"

namespace isonorm {
namespace {
thread_local const UseAllocator* innermost = nullptr;
}

UseAllocator::UseAllocator(Device device, Allocator& allocator)
    : device_(device), allocator_(allocator), outer_(innermost) {
  innermost = this;
}
UseAllocator::~UseAllocator() { innermost = outer_; }

Allocator* UseAllocator::of(Device device) {
  for (const UseAllocator* u = innermost; u; u = u->outer_)
    if (u->device_ == device) return &u->allocator_;
  return nullptr;
}

}  // namespace isonorm
