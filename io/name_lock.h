// One process at a time under a name: two that write one file in turn would each leave half of their work.
#pragma once

#include <optional>
#include <string>

#include "io/unfinished.h"

namespace isonorm::io {

// Holds the lock file `<path>.lock` until the object is destroyed or a signal ends the process
// (Unfinished::remove_all()). If `path` is a symbolic link, the lock file lies next to the file that it leads to. The
// lock file names the process that holds it. The lock of a killed process is free, and is taken. Nothing is locked if
// there is no path, if it is a device or pipe, or if the file system has no locks.
class NameLock {
 public:
  // Throws (io) where another has it, naming process and host ("c: process 17 on moon is writing it"), where the file
  // cannot be made, and where one of that name is no lock.
  [[nodiscard]] explicit NameLock(const std::string& path);
  ~NameLock();
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;

  // The name of that file.
  static std::string file(const std::string& path);

 private:
  std::optional<Unfinished> file_;  // while it is held
  int fd_ = -1;
};

}  // namespace isonorm::io
