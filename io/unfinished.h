// Files and folders that have a temporary name until they are complete.
#pragma once

#include <sys/types.h>

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

  // Removes the files and folders of all living objects (up to 16). Async-signal-safe: handlers of signals that end the
  // process call it.
  static void remove_all() noexcept;

 private:
  std::string path_;
  pid_t process_;
  int slot_ = -1;  // index in the table that remove_all() reads; -1: none
  bool finished_ = false;
};

}  // namespace isonorm::io
