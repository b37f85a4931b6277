// Files and folders that have a temporary name until they are whole.
#pragma once

#include <sys/types.h>

#include <string>

namespace isonorm::io {

// A file or folder that is being written under a temporary name by this process: copies that fork() makes leave it alone.
class Unfinished {
 public:
  // Makes nothing yet.
  explicit Unfinished(std::string path);
  // Removes the file, or the folder with all files in it, unless finish() was called.
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::string& path() const { return path_; }
  // It has its final name now: nothing is removed any more.
  void finish();

  // Removes the files and folders of every living object (up to 16). It is async-signal-safe: the handler of a signal
  // that ends the process calls it.
  static void remove_all() noexcept;

 private:
  std::string path_;
  pid_t process_;
  int slot_ = -1;  // in the table that remove_all() reads; -1: in none
  bool finished_ = false;
};

}  // namespace isonorm::io
