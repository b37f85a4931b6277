// Scratch memory for one call of a kernel.
#pragma once

#include "core/memory/allocator.h"

namespace isonorm {
namespace {

// n elements from the allocator of tensors, which keeps the memory for the next call.
template <class T> class Workspace {
 public:
  explicit Workspace(int64_t n)
      : bytes_(n * static_cast<int64_t>(sizeof(T))), p_(static_cast<T*>(host_allocator().allocate(bytes_))) {}
  ~Workspace() { host_allocator().release(p_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  T* data() const { return p_; }

 private:
  int64_t bytes_;
  T* p_;
};

}  // namespace
}  // namespace isonorm
