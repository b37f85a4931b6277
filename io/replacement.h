// Replacing files so that a reader, also one after a crash or power cut, finds the old content or the new, never a
// mixture.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace isonorm::io {

// A file that appears under its name all at once. Bytes go to `<path>.tmp.<16 random hexadecimal digits>` in the same
// folder; commit() does fsync(file), rename, fsync(folder). Without commit() the temporary file is removed and the old
// file stays. Who writes a temporary file holds a lock (flock) on it, also seen from other containers and, where the
// file system has locks, other machines; those without a lock were left by dead processes, and the next replacement of
// the same path removes them. A symbolic link is followed: what it points to is replaced. A device or pipe is never
// replaced: the bytes go into it. The new file has the mode of the old one.
class Replacement {
 public:
  // Creates the temporary file. Throws (io) where that fails, where the path is a folder, and where what is there may not
  // be written or not be replaced: a link is asked as the system follows it.
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(const void* bytes, int64_t n);
  void write(std::string_view s) { write(s.data(), static_cast<int64_t>(s.size())); }
  // Throws (io) where a step fails. Up to the rename the old file stays; where only the folder's fsync failed the new
  // one is in place, but may be gone after a power cut.
  void commit();

  // Throws (io) what a replacement of `path` by that many bytes would throw, as far as it can be known before: makes the
  // temporary file, with room for them, and removes it. A device or pipe is not opened: its reader would see an end.
  static void rehearse(const std::string& path, int64_t bytes);

 private:
  std::string path_, temporary_;  // temporary_ is empty where there is none (any more)
  int fd_ = -1;
};

// What a replacement of `path` replaces: the path, or where its symbolic links lead, whether something is there or not.
// Throws (io) where they lead in a circle.
std::string followed(const std::string& path);

// Whether a replacement of `path` removes the file `other`, or may make one of its name: `<path>.tmp.<16 digits>`.
bool is_temporary_of(const std::string& path, const std::string& other);

// Whether the path leads to a file that a process has open already, which has perhaps no name: /dev/stdout does.
bool is_open_file(const std::string& path);

// The system calls of a replacement. Tests put others in, to make each fail or end the process in turn.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int fd, const void* bytes, size_t n);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
};
SystemCalls& system_calls();

}  // namespace isonorm::io
