#include "core/pool.h"

#include <new>

namespace isonorm::pool {
namespace {

constexpr size_t kUnit = 64;  // sizes are rounded up to multiples of a cache line

// Blocks of one size that a thread keeps at most, so that a thread which releases what another one makes does not hoard
// them. None under AddressSanitizer, which then sees every access to a released block.
#ifdef __SANITIZE_ADDRESS__
constexpr int kKept = 0;
#else
constexpr int kKept = 4096;
#endif

struct Block {
  Block* next;
};
struct List {
  Block* first = nullptr;
  int room = 0;  // blocks that may still be put in
};
constinit thread_local List lists[kLargest / kUnit];  // trivial, so that it may be used until the thread is gone

void to_system(void* block) noexcept { ::operator delete (block, std::align_val_t{kUnit}); }

// Opens the lists of a thread. When the thread ends it empties and closes them: what the thread still releases then
// goes back to the system.
struct Opening {
  Opening() {
    for (List& l : lists) l.room = kKept;
  }
  ~Opening() {
    for (List& l : lists) {
      l.room = 0;
      while (l.first) to_system(std::exchange(l.first, l.first->next));
    }
  }
};

}  // namespace

void* take(size_t bytes) {
  if (bytes > kLargest) return ::operator new (bytes, std::align_val_t{kUnit});
  const size_t units = (bytes + kUnit - 1) / kUnit;
  List& list = lists[units - 1];
  if (Block* block = list.first) [[likely]] {
    list.first = block->next;
    ++list.room;
    return block;
  }
  thread_local const Opening opening;
  return ::operator new (units* kUnit, std::align_val_t{kUnit});
}

void give(void* block, size_t bytes) noexcept {
  if (bytes > kLargest) return to_system(block);
  List& list = lists[(bytes + kUnit - 1) / kUnit - 1];
  if (list.room == 0) return to_system(block);
  list.first = new (block) Block{list.first};
  --list.room;
}

}  // namespace isonorm::pool
