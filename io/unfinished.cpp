#include "io/unfinished.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

namespace isonorm::io {
namespace {

// Removes a folder and the files in it. Unfinished folders hold no folders (exchange/hub/write_folder.cpp).
void remove_folder(const char* path) noexcept {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char entries[4096];
  for (ssize_t n = 0; (n = getdents64(folder, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      unlinkat(folder, entry->d_name, 0);  // fails for . and ..
      at += entry->d_reclen;
    }
  }
  close(folder);
  rmdir(path);
}

// Allocates nothing, because it runs when memory is exhausted and in signal handlers.
void remove_now(const char* path) noexcept {
  if (unlink(path) != 0 && errno == EISDIR) remove_folder(path);
}

// In static memory, because a signal handler may read it at any time.
struct Slot {
  std::atomic<bool> taken, filled;
  pid_t process;
  char path[PATH_MAX];
};
constexpr int kSlots = 16;
constinit Slot slots[kSlots] = {};

}  // namespace

Unfinished::Unfinished(std::string path) : path_(std::move(path)), process_(getpid()) {
  if (path_.size() >= PATH_MAX) return;  // no such file can exist
  for (int i = 0; i < kSlots && slot_ < 0; ++i)
    if (!slots[i].taken.exchange(true)) slot_ = i;
  if (slot_ < 0) return;
  std::memcpy(slots[slot_].path, path_.c_str(), path_.size() + 1);
  slots[slot_].process = process_;
  slots[slot_].filled = true;
}

Unfinished::~Unfinished() {
  if (finished_) return;
  if (process_ == getpid()) remove_now(path_.c_str());
  finish();
}

void Unfinished::finish() {
  finished_ = true;
  if (slot_ < 0) return;
  slots[slot_].filled = false, slots[slot_].taken = false;
  slot_ = -1;
}

void Unfinished::remove_all() noexcept {
  const int error = errno;
  for (const Slot& slot : slots)
    if (slot.filled && slot.process == getpid()) remove_now(slot.path);
  errno = error;
}

}  // namespace isonorm::io
