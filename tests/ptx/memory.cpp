#include "tests/ptx/memory.h"

#include <charconv>
#include <map>
#include <mutex>
#include <span>

#include "tests/ptx/block.h"

namespace isonorm::ptx {
namespace {

struct Memory {
  std::mutex mutex;
  std::map<uint64_t, uint64_t> blocks;  // begin and end
  uint64_t begin = 1, end = 0;          // of the block that was found last
};
Memory& memory() {
  static auto& all = *new Memory;
  return all;
}

std::string hexadecimal(uint64_t address) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, address, 16).ptr;
  return "0x" + std::string(digits, end);
}

// Null if the bytes at `at` are not all among `bytes`. No sum can overflow.
std::byte* within(std::span<std::byte> bytes, uint64_t at, size_t count) {
  return at <= bytes.size() && count <= bytes.size() - at ? bytes.data() + at : nullptr;
}

}  // namespace

void add_memory(const void* p, size_t bytes) {
  const std::lock_guard guard(memory().mutex);
  const auto begin = reinterpret_cast<uint64_t>(p);
  memory().blocks[begin] = begin + bytes;
}
void remove_memory(const void* p) {
  const std::lock_guard guard(memory().mutex);
  memory().blocks.erase(reinterpret_cast<uint64_t>(p));
  memory().begin = 1, memory().end = 0;
}
bool is_memory(uint64_t address, size_t bytes) {
  Memory& m = memory();
  if (address >= m.begin && address < m.end && bytes <= m.end - address) return true;
  const std::lock_guard guard(m.mutex);
  auto block = m.blocks.upper_bound(address);
  if (block == m.blocks.begin()) return false;
  --block;
  if (address >= block->second || bytes > block->second - address) return false;
  m.begin = block->first, m.end = block->second;
  return true;
}

std::byte* reach(Warp& w, const Instruction& in, int lane, Space space, uint64_t address, size_t bytes) {
  if (space == Space::generic) {
    space = address >= kSharedWindow ? Space::shared : Space::global;
    if (space == Space::shared) address -= kSharedWindow;
  }
  if (space == Space::shared) address &= 0xffff'ffff;
  if (address % bytes != 0)
    fault(w, in, lane, Fault::Kind::misaligned,
          "address " + hexadecimal(address) + " is no multiple of " + std::to_string(bytes));
  std::byte* found = nullptr;
  const char* name = "global memory";
  switch (space) {
    case Space::shared:
      name = "shared memory";
      found = address >= kDynamicShared ? within(w.block->dynamic_shared, address - kDynamicShared, bytes)
                                        : within(w.block->shared, address, bytes);
      break;
    case Space::param:
      name = "the parameters";
      found = within(w.block->parameters, address, bytes);
      break;
    case Space::local:
      name = "the frame";
      found = within(
          std::span(w.frames).subspan(static_cast<size_t>(lane) * w.function->frame_bytes, w.function->frame_bytes),
          address, bytes);
      break;
    default:
      if (is_memory(address, bytes)) found = reinterpret_cast<std::byte*>(address);
  }
  if (!found)
    fault(w, in, lane, Fault::Kind::address,
          std::to_string(bytes) + " bytes at " + hexadecimal(address) + " are outside of " + name);
  return found;
}

}  // namespace isonorm::ptx
