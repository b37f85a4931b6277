// A lock on a file name, so that two processes do not write the same file in turn.
#pragma once

#include <optional>
#include <string>

#include "io/unfinished.h"

namespace isonorm::io {

// Holds the lock file `<path>.lock` until the object is destroyed or a signal ends the process
// (Unfinished::remove_all()). If `path` is a symbolic link, the lock file is next to the file that it points to. The
// lock file names the process that holds it. A lock left by a killed process counts as free. Nothing is locked if the
// path is empty, is a device or pipe, or if the file system has no locks.
class NameLock {
 public:
  // Throws (io) if another process holds the lock, naming process and host ("c: process 17 on moon is writing it"); if
  // the lock file cannot be created; or if the file of that name is not a lock file.
  [[nodiscard]] explicit NameLock(const std::string& path);
  ~NameLock();
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;

  // The path of the lock file.
  static std::string file(const std::string& path);

 private:
  std::optional<Unfinished> file_;  // while the lock is held
  int fd_ = -1;
};

}  // namespace isonorm::io
