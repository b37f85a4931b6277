// One process at a time under a name: two that write one file in turn would each leave half of their work.
#pragma once

#include <optional>
#include <string>

#include "io/unfinished.h"

namespace isonorm::io {

// Holds `<path>.lock`, beside the file where `path` is a link, until it is destroyed or a signal ends the process
// (Unfinished::remove_all()); it says there who does. What a killed process left is free, and taken. Without a path, for a device or pipe, and where the file system has no locks
// nothing is held.
class NameLock {
 public:
  // Throws (io) where another has it, naming process and host ("c: process 17 on moon is writing it"), where the file
  // cannot be made, and where one of that name is no lock.
  explicit NameLock(const std::string& path);
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
