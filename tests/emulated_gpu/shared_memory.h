// Shared memory of the block that runs: regions of all ones (NaN in every format, -1 as an integer), each with bytes
// behind it that nobody may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/emulated_gpu/sanitizers.h"

namespace isonorm::gpu::emulated {

class SharedMemory {
 public:
  static constexpr size_t kMost = 227 << 10, kStaticMost = 48 << 10;  // bytes of a block

  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(size_t dynamic);
  // The struct of this tag; null where static regions pass 48 KiB, or with the dynamic one what a block may have.
  void* region(const void* tag, size_t bytes, size_t alignment);
  void* dynamic() const { return room_ + kDynamic; }
  bool holds(const void* p, size_t bytes) const;
  // Whether all bytes outside of the regions are as they were. AddressSanitizer knows better: true then.
  bool intact() const;

  // To the race checker blocks that use the same bytes would race: each of kRooms has its own. True where the next
  // block is the first to use a room again, which all blocks before it must then have left.
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
  size_t blocks_ = 0, used_ = 0, fixed_ = 0, dynamic_ = 0;  // used_: with gaps, fixed_: without
  std::vector<Region> regions_;
};

// memset() that no sanitizer sees as a write of the thread that calls it.
void set_ones(std::byte* p, size_t bytes);

}  // namespace isonorm::gpu::emulated
