// Files that a verb writes. Trouble with them shows before minutes of work, not after.
#pragma once

#include <cstdio>
#include <string>

namespace isonorm::tools {

// Throws Error (io) where a file of that name could not be written now. An empty name is no file.
void check_writable(const std::string& path);

// Makes the folder where it is not there; that in which it lies has to be. Throws Error (io) where nothing could be
// written into it. An empty name is no folder.
void make_folder(const std::string& path);

// Writes `content` as the file's whole content. Throws Error (io).
void write_file(const std::string& path, const std::string& content);

// A file that grows by whole lines, each on the disk's side of the program before the next step.
class LineLog {
 public:
  // Begins anew, or after what is there; an empty name is no file.
  explicit LineLog(const std::string& path, bool append = false);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  bool open() const { return file_ != nullptr; }
  void write(const std::string& line);  // with its newline; throws Error (io)

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace isonorm::tools
