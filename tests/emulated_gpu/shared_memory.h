// Shared memory of the running block: regions filled with ones (NaN in every format, -1 as an integer), each followed
// by bytes that must not be accessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/emulated_gpu/sanitizers.h"

namespace isonorm::gpu::emulated {

class SharedMemory {
 public:
  static constexpr size_t kMost = 227 << 10, kStaticMost = 48 << 10;  // bytes per block

  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(size_t dynamic);
  // The region of this tag. Null if static regions exceed 48 KiB, or together with the dynamic region a block's limit.
  void* region(const void* tag, size_t bytes, size_t alignment);
  void* dynamic() const { return room_ + kDynamic; }
  bool holds(const void* p, size_t bytes) const;
  // True if all bytes outside of the regions are unchanged. With AddressSanitizer, which detects this itself, always
  // true.
  bool intact() const;

  // The race checker would report blocks that use the same bytes, so each of kRooms blocks has its own. True if the
  // next block is the first to reuse a room; all blocks before it must then have ended.
  bool comes_round() const { return kRooms > 1 && (blocks_ + 1) % kRooms == 0; }

 private:
  struct Region {
    const void* tag;
    size_t offset, bytes;
  };
  static constexpr size_t kGap = 256, kDynamic = 128 << 10, kRoom = 1 << 20, kRooms = kRaceChecks ? 64 : 1;

  void declare(size_t offset, size_t bytes);
  bool ones(size_t begin, size_t end) const;

  std::byte *rooms_, *room_;
  size_t blocks_ = 0, used_ = 0, fixed_ = 0, dynamic_ = 0;  // used_: including gaps; fixed_: without
  std::vector<Region> regions_;
};

// memset() that the sanitizers do not see as a write of the calling thread.
void set_ones(std::byte* p, size_t bytes);

}  // namespace isonorm::gpu::emulated
