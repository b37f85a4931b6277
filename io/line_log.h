// A log file that grows line by line and belongs to one process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace isonorm::io {

// A file that grows by whole lines. Each line is flushed before write() returns.
class LineLog {
 public:
  // Opens the file and locks it; changes nothing yet. An empty path opens nothing. Throws Error (io) if opening fails
  // or another process is writing the log. Throws Error if the file exists and its content does not begin with `begin`.
  LineLog(const std::string& path, std::string_view begin);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  bool open() const { return file_ != nullptr; }
  // Truncates the file to its first `bytes` bytes and completes the last line with a newline. Call it once, before the
  // first write. Devices, pipes and files that this process has open (/dev/stdout) are left as they are.
  void keep(int64_t bytes);
  void write(const std::string& line);  // `line` includes its newline; throws as check_written() (io/replacement.h)

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  bool kept_ = false;  // a file that a later training continues
};

}  // namespace isonorm::io
