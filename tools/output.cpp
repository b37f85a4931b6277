#include "tools/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/file.h"

namespace isonorm::tools {

void check_writable(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;
  check_io(!std::filesystem::is_directory(path, ignored), path, ": is a folder");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  check_io(access(where.c_str(), W_OK | X_OK) == 0, path, ": cannot be written: ", std::strerror(errno));
  check_io(access(path.c_str(), F_OK) != 0 || access(path.c_str(), W_OK) == 0, path,
           ": cannot be written: ", std::strerror(errno));
}

void write_file(const std::string& path, const std::string& content) {
  io::Replacement file(path);
  file.write(content);
  file.commit();
}

LineLog::LineLog(const std::string& path, bool append) : path_(path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), append ? "ae" : "we");
  check_io(file_ != nullptr, path, ": cannot be written: ", std::strerror(errno));
}

LineLog::~LineLog() {
  if (file_) std::fclose(file_);
}

void LineLog::write(const std::string& line) {
  const bool ok = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  check_io(ok, path_, ": writing failed: ", std::strerror(errno));
}

}  // namespace isonorm::tools
