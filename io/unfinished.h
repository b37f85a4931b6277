// Files and folders that have a temporary name until they are complete, and locks on the names of files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace isonorm::io {

// A file or folder that this process is writing under a temporary name. Child processes made by fork() do not remove
// it.
class Unfinished {
 public:
  // Creates no file.
  explicit Unfinished(std::string path);
  // Removes the file, or the folder with all files in it, unless finish() was called.
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::string& path() const { return path_; }
  // Call it when the file has its final name: from now on nothing is removed.
  void finish();

  // Removes every living object's file or folder (up to 16). Async-signal-safe: handlers of signals that end the
  // process call it.
  static void remove_all() noexcept;

 private:
  std::string path_;
  pid_t process_;
  int slot_ = -1;  // index in the table that remove_all() reads; -1: none
  bool finished_ = false;
};

// Holds the lock file `<path>.lock` until the object is destroyed or a signal ends the process
// (Unfinished::remove_all()). If `path` is a symbolic link, the lock file is next to the file that it points to. The
// lock file names the process that holds it. A lock left by a killed process counts as free. Nothing is locked if the
// path is empty, is a device or pipe, or if the file system has no locks.
class NameLock {
 public:
  // Throws (io) if another process holds the lock, naming process and host ("c: process 17 on moon is writing it"); if
  // the lock file cannot be created; or if the file with its name is not a lock file.
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
