// Device memory and pinned memory: blocks of host memory that kernels may access. Every bit is 1 at first.
#include "tests/ptx/memory.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/ptx/runtime/runtime.h"

using namespace isonorm::ptx;

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

constexpr size_t kTotal = size_t{16} << 30;
size_t in_use = 0;
std::map<void*, size_t>& blocks() {
  static auto& all = *new std::map<void*, size_t>;
  return all;
}

cudaError_t allocate(void** p, size_t bytes) {
  *p = nullptr;
  if (lost()) return lost();
  if (bytes == 0) return cudaSuccess;
  if (bytes > kTotal - in_use) return noted(cudaErrorMemoryAllocation);
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return noted(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  blocks()[*p] = bytes;
  in_use += bytes;
  add_memory(*p, bytes);
  return cudaSuccess;
}
cudaError_t release(void* p) {
  if (!p) return cudaSuccess;
  const auto block = blocks().find(p);
  if (block == blocks().end()) return noted(cudaErrorInvalidValue);
  in_use -= block->second;
  blocks().erase(block);
  remove_memory(p);
  std::free(p);
  return lost();
}

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Guard guard(lock());
  *total = kTotal;
  *free = kTotal - in_use;
  return lost();
}
cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Guard guard(lock());
  return allocate(p, bytes);
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  const Guard guard(lock());
  return allocate(p, bytes);
}
cudaError_t cudaFree(void* p) {
  const Guard guard(lock());
  return release(p);
}
cudaError_t cudaFreeHost(void* p) {
  const Guard guard(lock());
  return release(p);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const Guard guard(lock());
  return give(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream) {
  const Guard guard(lock());
  return give(stream, [=] { std::memset(p, value, bytes); });
}

}  // extern "C"
