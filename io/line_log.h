// A log as a file: it grows by lines while work goes on, and belongs to one process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace isonorm::io {

// A file that grows by whole lines, each on the disk's side of the program before the next step.
class LineLog {
 public:
  // Opens the file, for itself alone, and changes nothing yet; an empty name is no file. Throws Error (io) where that
  // fails or another process is writing the log; Error where what is there does not begin with `begin`.
  LineLog(const std::string& path, std::string_view begin);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  bool open() const { return file_ != nullptr; }
  // Leaves the first `bytes` of what is there, with the end of the last line; to be called once, before the first
  // write. Devices, pipes and files that this process has open (/dev/stdout) are written as they are.
  void keep(int64_t bytes);
  void write(const std::string& line);  // with its newline; throws as check_written() (io/replacement.h)

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  bool kept_ = false;  // a file that a later training continues
};

}  // namespace isonorm::io
