// Internal: a file as memory that the system reads as it is touched.
#pragma once

#include <string>
#include <string_view>

namespace isonorm {

// A regular file, mapped for reading from beginning to end. A file that becomes shorter meanwhile ends the process
// (SIGBUS).
class MappedFile {
 public:
  // Throws (io) where the file is missing, no regular file, or cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;  // null where the file is empty
};

}  // namespace isonorm
