#include "core/memory/pool.h"

namespace isonorm::pool::detail {
namespace {

// Most blocks of a size that a thread keeps, so that a thread that frees the blocks of another thread does not hoard
// them. 0 under AddressSanitizer, which then sees every access to a freed block.
#ifdef __SANITIZE_ADDRESS__
constexpr int kKept = 0;
#else
constexpr int kKept = 4096;
#endif

// Opens the lists of a thread. When the thread ends, empties and closes them: blocks that the thread frees after that
// go back to the system.
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

void* from_system(size_t bytes) {
  thread_local const Opening opening;
  return ::operator new ((bytes + kUnit - 1) / kUnit * kUnit, std::align_val_t{kUnit});
}

void to_system(void* block) noexcept { ::operator delete (block, std::align_val_t{kUnit}); }

}  // namespace isonorm::pool::detail
