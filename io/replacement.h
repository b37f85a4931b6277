// Atomic replacement of files: a reader finds the old content or the new, never a mixture, even after a crash or a
// power cut.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/unfinished.h"

struct stat;

namespace isonorm::io {

// A file that appears under its name atomically. Bytes go to `<path>.tmp.<16 random hexadecimal digits>` in the same
// folder; commit() does fsync(file), rename, fsync(folder). Without commit() the temporary file is removed and the old
// file stays. Unfinished::remove_all() removes the temporary file, too.
//
// The writer of a temporary file holds a lock (flock) on it. Other containers see the lock, and so do other machines if
// the file system has locks. A temporary file without a lock was left by a dead process; the next replacement of the
// same path removes it.
//
// A symbolic link is followed: the file that it points to is replaced. A device or pipe is never replaced: the bytes go
// into it. Neither is a file that this process has open (/dev/stdout): writing continues at its descriptor's position.
// The new file has the mode of the old one.
class Replacement {
 public:
  // Creates the temporary file. Throws (io) if that fails, if the path is a folder, or if the existing file may not be
  // written or replaced. Permissions are tested on the path as given, so the system follows the links.
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(const void* bytes, int64_t n);
  void write(std::string_view s) { write(s.data(), static_cast<int64_t>(s.size())); }
  // Throws (io) if a step fails, and what replacement_check() throws. Until the rename the old file stays. If only the
  // folder's fsync failed, the new file is in place but a power cut may undo that.
  void commit();

  // Tests whether a replacement of `path` by `bytes` bytes would succeed, as far as that can be known: creates the
  // temporary file, reserves the room, and removes it. Throws (io). A device or pipe is not opened, because its reader
  // would see an end of file.
  static void rehearse(const std::string& path, int64_t bytes);

 private:
  std::string given_, path_;             // path_: given_ with its links followed
  std::optional<Unfinished> temporary_;  // empty for a device, a pipe or an open file
  int fd_ = -1;
};

// The file that a replacement of `path` replaces: the target of its symbolic links, whether it exists or not. Throws
// (io) if the links lead in a circle.
std::string followed(const std::string& path);

// Called before each rename of a replacement, with the path as given and the status of the new file. If it throws, the
// old file stays. Programs set it; empty: nothing is called.
std::function<void(const std::string& path, const struct stat& made)>& replacement_check();

// True if the file at `path` has the bytes `begin` at `offset`. A shorter file must have a prefix of `begin` there; a
// file that ends before the offset must be empty. Also true if the file is missing or cannot be read.
bool begins_with(const std::string& path, std::string_view begin, int64_t offset = 0);

// True if `other` is named like a temporary file of `path` (`<path>.tmp.<16 digits>`): replacing `path` may create or
// remove such a file.
bool is_temporary_of(const std::string& path, const std::string& other);

// True if the path leads to an open file of a process, which may have no name of its own: /dev/stdout does.
bool is_open_file(const std::string& path);

// The descriptor of this process that the path leads to: 1 for /dev/stdout, 63 for /dev/fd/63; -1 if there is none.
int descriptor_of(const std::string& path);
// A new descriptor of the same open file at the same position; the caller closes it. Throws (io), naming the path, if
// `descriptor` is not open for writing.
int open_again(const std::string& path, int descriptor);

// Call it after a write to `path`, which has set errno if it failed. If `good` is false, throws NobodyReads
// (core/system/terminal.h) if the path leads to standard output and its reader has closed the pipe, else Error (io),
// which begins with `what`.
void check_written(bool good, const std::string& path, const std::string& what);

// The system calls of a replacement. Tests substitute others, so that each call fails or ends the process in turn.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int fd, const void* bytes, size_t n);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*rename)(const char* from, const char* to);
};
SystemCalls& system_calls();

}  // namespace isonorm::io
