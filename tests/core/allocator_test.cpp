// The caching allocator over a source that counts: blocks do not overlap, freed memory serves other sizes, and the
// cache goes back to the source before an allocation fails.
#include "core/memory/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace isonorm;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A source with `room` bytes.
class Source final : public Allocator {
 public:
  Source(int64_t room, int64_t segment) : Allocator(64, segment), room(room) {}
  ~Source() { empty_cache(); }

  int64_t room, discarded = 0;

 private:
  void* source_allocate(int64_t bytes, int64_t alignment) noexcept override {
    if (bytes > room) return nullptr;
    room -= bytes;
    void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(bytes));
    sizes_[block] = bytes;
    return block;
  }
  void source_release(void* block) noexcept override {
    room += sizes_.extract(block).mapped();
    std::free(block);
  }
  void source_discard(void*, int64_t bytes) noexcept override { discarded += bytes; }

  std::map<void*, int64_t> sizes_;
};

struct Block {
  unsigned char* begin;
  int64_t bytes;
  unsigned char mark;
};

}  // namespace

TEST_CASE("blocks of random sizes are aligned, keep their bytes and are counted") {
  std::mt19937 random(1);
  Source source(int64_t{1} << 40, 4 * kMiB);
  std::vector<Block> blocks;
  int64_t least = 0;  // bytes in use: at least the requested ones
  const auto release = [&](size_t i) {
    const Block b = blocks[i];
    CHECK(std::all_of(b.begin, b.begin + b.bytes, [&](unsigned char c) { return c == b.mark; }));
    source.release(b.begin, b.bytes);
    least -= b.bytes;
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int i = 0; i < 3000; ++i) {
    if (!blocks.empty() && random() % (blocks.size() < 40 ? 3 : 2) == 0) {
      release(random() % blocks.size());
    } else {
      const int64_t bytes = 1 + static_cast<int64_t>(random() % (1u << (random() % 22)));
      Block b{static_cast<unsigned char*>(source.allocate(bytes)), bytes, static_cast<unsigned char>(i)};
      REQUIRE(reinterpret_cast<uintptr_t>(b.begin) % 64 == 0);
      std::fill_n(b.begin, bytes, b.mark);
      blocks.push_back(b);
      least += bytes;
    }
    const MemoryStats s = source.stats();
    REQUIRE(s.current >= least);
    REQUIRE(s.current <= least + least / 4 + 64 * static_cast<int64_t>(blocks.size()));
    REQUIRE(s.peak >= s.current);
    REQUIRE(s.cached >= 0);
  }
  while (!blocks.empty()) release(0);
  CHECK(source.stats().current == 0);
  source.empty_cache();
  CHECK(source.stats().cached == 0);
  CHECK(source.room == int64_t{1} << 40);
}

#ifndef __SANITIZE_ADDRESS__  // with it, no block is a part of a segment
TEST_CASE("large blocks that were freed serve other sizes, and new memory comes last") {
  Source source(int64_t{1} << 40, 64 * kMiB);
  void *const a = source.allocate(3 * kMiB), *const b = source.allocate(2 * kMiB), *const c = source.allocate(kMiB);
  const int64_t requests = source.stats().requests;
  CHECK(requests == 3);
  source.release(a, 3 * kMiB);
  source.release(b, 2 * kMiB);
  CHECK(source.stats().cached == 5 * kMiB);
  // The two neighbours are one range now, which serves one block or several.
  CHECK(source.allocate(5 * kMiB) == a);
  source.release(a, 5 * kMiB);
  void* const d = source.allocate(4 * kMiB);
  CHECK(d == a);
  // The smallest range that fits is used: the rest of 1 MiB, not the begin of a larger range.
  source.release(d, 4 * kMiB);
  void* const e = source.allocate(3 * kMiB);
  void* const f = source.allocate(2 * kMiB);
  source.release(e, 3 * kMiB);
  source.release(c, kMiB);
  CHECK(source.allocate(kMiB) == c);
  CHECK(source.stats().requests == requests);
  // A block that fits nowhere extends the free range in front of untouched memory.
  source.release(c, kMiB);
  CHECK(source.allocate(4 * kMiB) == c);
  CHECK(source.stats().requests == requests + 1);
  CHECK(source.stats().current == 6 * kMiB);
  CHECK(source.stats().cached == 3 * kMiB);
  CHECK(source.room == (int64_t{1} << 40) - 64 * kMiB);
  source.empty_cache();
  CHECK(source.discarded == 3 * kMiB);
  CHECK(source.stats().cached == 0);
  source.release(c, 4 * kMiB);
  source.release(f, 2 * kMiB);
}

TEST_CASE("a segment without blocks goes back, and no block reaches from one into the next") {
  Source source(int64_t{1} << 40, 2 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(source.allocate(kMiB));
  CHECK(source.room == (int64_t{1} << 40) - 8 * kMiB);
  for (void* b : blocks) source.release(b, kMiB);
  void* const all = source.allocate(8 * kMiB);
  CHECK(source.room == (int64_t{1} << 40) - 16 * kMiB);
  source.empty_cache();
  CHECK(source.room == (int64_t{1} << 40) - 8 * kMiB);
  source.release(all, 8 * kMiB);
}
#endif

TEST_CASE("if the source has no memory left, the cache is released") {
  Source source(10 * kMiB, 64 * kMiB);  // no room for a segment of full size
  void* const a = source.allocate(6 * kMiB);
  CHECK_THROWS_WITH(source.allocate(5 * kMiB), Catch::Matchers::Contains("out of memory: 5242880 bytes asked for, 6"));
  source.release(a, 6 * kMiB);
  void* const b = source.allocate(9 * kMiB);
  CHECK(b != nullptr);
  CHECK_THROWS_WITH(source.allocate(int64_t{1} << 50), Catch::Matchers::Contains("not a possible size"));
  source.release(b, 9 * kMiB);
}
